//! Moves in a JSON tree: read, insert, remove, merge. No schema in here.

use serde_json::{Map, Value};

/// The value at `path`, if it is there.
#[must_use]
pub fn get<'a, S: AsRef<str>>(root: &'a Value, path: &[S]) -> Option<&'a Value> {
    path.iter()
        .try_fold(root, |value, name| value.as_object()?.get(name.as_ref()))
}

/// Puts `value` at `path`, making the tables on the way; whatever is no table there is replaced by one.
pub fn insert<S: AsRef<str>>(root: &mut Value, path: &[S], value: Value) {
    let mut place = root;
    for name in path {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Value::Object(map) = place else { return };
        place = map.entry(name.as_ref()).or_insert(Value::Null);
    }
    *place = value;
}

/// Removes what is at `path` together with the tables that become empty by it; says what was there.
pub fn remove<S: AsRef<str>>(root: &mut Value, path: &[S]) -> Option<Value> {
    let (first, rest) = path.split_first()?;
    let map = root.as_object_mut()?;
    if rest.is_empty() {
        return map.shift_remove(first.as_ref());
    }
    let child = map.get_mut(first.as_ref())?;
    let removed = remove(child, rest)?;
    if child.as_object().is_some_and(Map::is_empty) {
        map.shift_remove(first.as_ref());
    }
    Some(removed)
}

/// Lays `upper` over `base`: tables merge key by key, anything else replaces.
pub fn merge(base: &mut Value, upper: &Value) {
    match (base, upper) {
        (Value::Object(base), Value::Object(upper)) => {
            for (name, value) in upper {
                match base.get_mut(name) {
                    Some(below) => merge(below, value),
                    None => {
                        base.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (base, upper) => base.clone_from(upper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn removal_prunes_only_what_it_emptied() {
        let mut root = json!({"a": {"b": {"c": 1}}, "x": {}});
        assert_eq!(remove(&mut root, &["a", "b", "d"]), None);
        assert_eq!(remove(&mut root, &["a", "b", "c"]), Some(json!(1)));
        assert_eq!(root, json!({"x": {}}));
    }

    #[test]
    fn scalars_and_lists_replace_and_tables_merge() {
        let mut base = json!({"a": {"x": 1, "y": [1, 2]}, "b": 1});
        merge(&mut base, &json!({"a": {"y": [3]}, "b": {"c": 2}}));
        assert_eq!(base, json!({"a": {"x": 1, "y": [3]}, "b": {"c": 2}}));
    }

    #[test]
    fn insertion_makes_the_tables_on_its_way() {
        let mut root = Value::Null;
        insert(&mut root, &["a", "b"], json!(1));
        insert(&mut root, &["a", "c"], json!(2));
        assert_eq!(root, json!({"a": {"b": 1, "c": 2}}));
        assert_eq!(get(&root, &["a", "c"]), Some(&json!(2)));
        assert_eq!(get(&root, &["a", "c", "d"]), None);
    }
}
