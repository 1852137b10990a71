//! What holds of the merge for every set of layers that the schema allows.

use agent_smith_core::config::schema::{Kind, Row, rows};
use agent_smith_core::config::{Config, Layers, Origin, merge, validate};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The rows whose values have one shape. Free tables hold anything, so that one layer may have a table where another
/// has a scalar; there the order of merging matters, and no law holds.
fn shaped() -> Vec<&'static Row> {
    rows().filter(|row| row.kind != Kind::Free).collect()
}

/// Two values that the row takes and that differ, where it has two.
fn values(row: &Row) -> Vec<Value> {
    let example: Value = serde_json::from_str(row.example).unwrap();
    let other = match row.kind {
        Kind::Bool => json!(!example.as_bool().unwrap()),
        Kind::Choice(choices) => json!(choices[0]),
        Kind::Integer(_) | Kind::Number(_) => json!(1),
        Kind::Numbers => json!([1, 2, 3]),
        Kind::Texts => json!([]),
        Kind::Headers => json!({"X-Other": "1"}),
        Kind::Url => json!("https://other/v1"),
        Kind::Combo => json!("F4"),
        _ => json!("other"),
    };
    vec![example, other]
}

fn layer() -> impl Strategy<Value = Value> {
    let one = prop::sample::select(shaped()).prop_flat_map(|row| {
        (
            Just(row),
            prop::sample::select(values(row)),
            prop::sample::select(vec!["a", "b/c:d.e"]),
        )
    });
    prop::collection::vec(one, 0..8).prop_map(|entries| {
        let mut layer = json!({});
        for (row, value, name) in entries {
            let tree = row.segments().rev().fold(value, |value, segment| {
                let segment = if segment.starts_with('<') { name } else { segment };
                json!({segment: value})
            });
            merge(&mut layer, &tree);
        }
        layer
    })
}

fn merged(layers: &[&Value]) -> Value {
    let mut sum = json!({});
    for layer in layers {
        merge(&mut sum, layer);
    }
    sum
}

/// The paths and values of everything that is no table.
fn leaves(value: &Value, path: &mut Vec<String>, out: &mut Vec<(Vec<String>, Value)>) {
    match value {
        Value::Object(map) => {
            for (name, child) in map {
                path.push(name.clone());
                leaves(child, path, out);
                path.pop();
            }
        }
        leaf => out.push((path.clone(), leaf.clone())),
    }
}

proptest! {
    #[test]
    fn merging_is_associative(a in layer(), b in layer(), c in layer()) {
        let left = merged(&[&merged(&[&a, &b]), &c]);
        let right = merged(&[&a, &merged(&[&b, &c])]);
        prop_assert_eq!(left, right);
    }

    #[test]
    fn merging_is_idempotent_and_an_empty_layer_is_nothing(a in layer(), b in layer()) {
        prop_assert_eq!(&merged(&[&a, &a]), &a);
        prop_assert_eq!(&merged(&[&a, &json!({})]), &a);
        let ab = merged(&[&a, &b]);
        prop_assert_eq!(merged(&[&ab, &b]), ab);
    }

    #[test]
    fn the_upper_layer_wins_and_nothing_else_is_lost(a in layer(), b in layer()) {
        let sum = merged(&[&a, &b]);
        let get = |root: &Value, path: &[String]| path.iter().try_fold(root.clone(), |value, name| value.get(name).cloned());
        let mut of_both = Vec::new();
        leaves(&a, &mut Vec::new(), &mut of_both);
        leaves(&b, &mut Vec::new(), &mut of_both);
        for (path, _) in &of_both {
            let expected = get(&b, path).or_else(|| get(&a, path));
            prop_assert_eq!(get(&sum, path), expected);
        }
        let mut of_sum = Vec::new();
        leaves(&sum, &mut Vec::new(), &mut of_sum);
        prop_assert!(of_sum.iter().all(|(path, _)| of_both.iter().any(|(other, _)| other == path)));
    }

    #[test]
    fn valid_layers_have_a_valid_sum_whose_leaves_know_their_layer(user in layer(), patch in layer(), ephemeral in layer()) {
        for layer in [&user, &patch, &ephemeral] {
            prop_assert!(validate(layer, &|_| Origin::Candidate).is_empty());
        }
        let layers = Layers { user_file: None, user, patch, ephemeral };
        let config = Config::from_layers(&layers).unwrap();
        let mut all = Vec::new();
        leaves(config.snapshot(), &mut Vec::new(), &mut all);
        for (path, value) in all {
            let source = match config.layer_at(&path).as_str() {
                "session" => layers.ephemeral.clone(),
                "/config set" => layers.patch.clone(),
                "user file" => layers.user.clone(),
                "default" => Config::defaults().snapshot().clone(),
                other => panic!("{other}"),
            };
            let found = path.iter().try_fold(&source, |value, name| value.get(name));
            prop_assert_eq!(found, Some(&value));
        }
    }
}
