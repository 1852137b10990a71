//! Builds LuaJIT for our own executables and says how each kind of artefact links.
//!
//! The cdylib resolves the Lua symbols in its host and holds no LuaJIT of its own; executables (the binary, tests,
//! benches) pull the whole archive in by a `#[link]` attribute in their root file and export its symbols, so that a
//! module loaded into them finds the same LuaJIT.

fn main() {
    println!("cargo:rerun-if-changed=src/build.rs");
    let artifacts = luajit_src::Build::new().lua52compat(true).build();
    println!("cargo:rustc-link-search=native={}", artifacts.lib_dir().display());
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // Worker threads may be alive when the host closes its Lua state: the code must stay mapped.
        println!("cargo:rustc-link-arg-cdylib=-Wl,-z,nodelete");
    }
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("macos") {
        // The Lua symbols are the host's.
        println!("cargo:rustc-link-arg-cdylib=-undefined");
        println!("cargo:rustc-link-arg-cdylib=dynamic_lookup");
    }
    for target in ["bins", "tests", "benches"] {
        println!("cargo:rustc-link-arg-{target}=-rdynamic");
    }
}
