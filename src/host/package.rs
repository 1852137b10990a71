//! The package's Lua files: inside the executable, or, for whoever works on them, in a directory.

use std::path::Path;

use mlua::{Lua, Table};

macro_rules! embedded {
    ($module:literal, $file:literal) => {
        ($module, $file, include_str!(concat!("../../lua/", $file)))
    };
}

/// The modules by name, with where each file stands and what is in it.
const EMBEDDED: &[(&str, &str, &str)] = &[
    embedded!("agent_smith", "agent_smith/init.lua"),
    embedded!("agent_smith.carrier", "agent_smith/carrier.lua"),
    embedded!("agent_smith.cells", "agent_smith/cells.lua"),
    embedded!("agent_smith.completion", "agent_smith/completion.lua"),
    embedded!("agent_smith.host", "agent_smith/host.lua"),
    embedded!("agent_smith.input_loop", "agent_smith/input_loop.lua"),
    embedded!("agent_smith.keys", "agent_smith/keys.lua"),
    embedded!("agent_smith.mode", "agent_smith/mode.lua"),
    embedded!("agent_smith.prompt", "agent_smith/prompt.lua"),
    embedded!("agent_smith.question", "agent_smith/question.lua"),
    embedded!("agent_smith.session", "agent_smith/session.lua"),
    embedded!("agent_smith.sidecar", "agent_smith/sidecar.lua"),
    embedded!("agent_smith.sidecar_lines", "agent_smith/sidecar_lines.lua"),
    embedded!("agent_smith.sidecar_process", "agent_smith/sidecar_process.lua"),
    embedded!("agent_smith.source", "agent_smith/source.lua"),
    embedded!("agent_smith.suffixes", "agent_smith/suffixes.lua"),
    embedded!("agent_smith.theme", "agent_smith/theme.lua"),
    embedded!("agent_smith.view", "agent_smith/view.lua"),
    embedded!("agent_smith.writer", "agent_smith/writer.lua"),
];

/// Makes the package's modules known to `require`: those of `directory` where one is given, else the embedded ones.
///
/// # Errors
/// Where Lua has no memory left.
pub(super) fn install(lua: &Lua, directory: Option<&Path>) -> mlua::Result<()> {
    let package: Table = lua.globals().get("package")?;
    if let Some(directory) = directory {
        let directory = directory.display();
        return package.set("path", format!("{directory}/?.lua;{directory}/?/init.lua"));
    }
    // Nothing is looked for in the current directory: a file there must not stand in for one of ours.
    package.set("path", "")?;
    let preload: Table = package.get("preload")?;
    for &(module, file, source) in EMBEDDED {
        let loader = lua.create_function(move |lua, name: String| {
            lua.load(source).set_name(format!("@{file}")).call::<mlua::Value>(name)
        })?;
        preload.set(module, loader)?;
    }
    Ok(())
}

/// The embedded modules' files as they are to lie in a host's package directory: path and content.
pub fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    EMBEDDED.iter().map(|&(_, file, source)| (file, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Manifest;

    #[test]
    fn the_embedded_modules_are_those_of_the_manifest() {
        let embedded: Vec<&str> = EMBEDDED.iter().map(|(module, _, _)| *module).collect();
        assert_eq!(embedded, Manifest::ours().unwrap().modules);
        for (module, file, _) in EMBEDDED {
            let base = module.replace('.', "/");
            assert!(
                *file == format!("{base}.lua") || *file == format!("{base}/init.lua"),
                "{file}"
            );
        }
    }

    #[test]
    fn an_embedded_module_loads_and_a_file_in_the_current_directory_does_not() {
        let lua = Lua::new();
        install(&lua, None).unwrap();
        lua.load("assert(type(require('agent_smith.keys').normalize) == 'function')")
            .exec()
            .unwrap();
        assert!(lua.load("require('tests.lua.check')").exec().is_err());
    }

    #[test]
    fn a_directory_takes_the_place_of_what_is_embedded() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("agent_smith")).unwrap();
        std::fs::write(home.path().join("agent_smith/keys.lua"), "return 'mine'").unwrap();
        let lua = Lua::new();
        install(&lua, Some(home.path())).unwrap();
        assert_eq!(
            lua.load("return require('agent_smith.keys')").eval::<String>().unwrap(),
            "mine"
        );
    }
}
