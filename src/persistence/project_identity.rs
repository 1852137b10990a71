//! Which project a directory belongs to, so that what is remembered follows the repository across checkouts.

use super::batch::sha256_hex;

/// Hex digits of a project id.
const ID_DIGITS: usize = 16;

/// A project: what it is recognised by, and its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectIdentity {
    /// The canonical form of the origin, or a path.
    pub canonical: String,
    /// The first 16 hex digits of the SHA-256 of the canonical form.
    pub project_id: String,
    /// Whether it is known by a path only: a repository without an origin, or no repository.
    pub local: bool,
}

impl ProjectIdentity {
    /// The project of a repository with the origin `url`.
    #[must_use]
    pub fn from_origin(url: &str) -> Option<Self> {
        let origin = normalize_origin(url)?;
        Some(Self {
            project_id: project_id(&origin.canonical),
            canonical: origin.canonical,
            local: origin.local,
        })
    }

    /// The project of a path: the root of a repository without an origin, or a working directory outside of any.
    #[must_use]
    pub fn from_path(path: &str) -> Self {
        let canonical = canonical_path(path);
        Self {
            project_id: project_id(&canonical),
            canonical,
            local: true,
        }
    }

    /// The project of a working directory: by its origin, else by the root of its repository, else by itself.
    #[must_use]
    pub fn resolve(origin: Option<&str>, root: Option<&str>, cwd: &str) -> Self {
        origin
            .and_then(Self::from_origin)
            .unwrap_or_else(|| Self::from_path(root.unwrap_or(cwd)))
    }
}

/// An origin in canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalizedOrigin {
    /// `host/path`, `host:port/path` where the port is not the scheme's own, or a path.
    pub canonical: String,
    /// Whether it is a path of this machine.
    pub local: bool,
}

/// The id of a canonical form.
#[must_use]
pub fn project_id(canonical: &str) -> String {
    let mut id = sha256_hex(canonical.as_bytes());
    id.truncate(ID_DIGITS);
    id
}

/// Brings the forms in which git takes a URL to one: `git@Host:a/b.git`, `ssh://git@host:22/a/b`, `https://host/a/b/`
/// and `git://host/a/b` are the same repository. `None` where nothing is left.
#[must_use]
pub fn normalize_origin(url: &str) -> Option<NormalizedOrigin> {
    let url = url.trim();
    if url.is_empty() {
        return None;
    }
    if let Some((scheme, rest)) = url.split_once("://") {
        // git also takes `git+ssh` and remote helpers (`ext::`, `codecommit::`) in front of a URL.
        let scheme = scheme.rsplit("::").next().unwrap_or(scheme).to_ascii_lowercase();
        if scheme == "file" {
            // `file:///a` and `file://host/a`: the latter is not of this machine.
            return match rest.split_once('/') {
                Some(("" | "localhost", path)) => Some(local(&percent_decode(&format!("/{path}")))),
                Some((host, path)) => remote(host, None, path),
                None => None,
            };
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = split_authority(authority);
        let port = port.filter(|port| *port != default_port(&scheme));
        return remote(host, port, path);
    }
    // The scp-like form has a `:` before any `/`; with a `/` first it is a path (gitremotes, "GIT URLS").
    let colon = scp_colon(url);
    let slash = url.find('/');
    match colon {
        Some(colon) if slash.is_none_or(|slash| colon < slash) => {
            let (host, _) = split_authority(&url[..colon]);
            remote(host, None, &url[colon + 1..])
        }
        _ => Some(local(url)),
    }
}

/// Where the path begins in an scp-like URL: the first `:` outside of a bracketed IPv6 address.
fn scp_colon(url: &str) -> Option<usize> {
    let from = match (url.find('['), url.find(']')) {
        (Some(open), Some(close)) if open < close && !url[..open].contains(['/', ':']) => close,
        _ => 0,
    };
    url[from..].find(':').map(|colon| from + colon)
}

/// `user:password@host:port` without user and password.
fn split_authority(authority: &str) -> (&str, Option<&str>) {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (name, Some(port).filter(|port| !port.is_empty()))
        }
        _ => (host, None),
    }
}

fn default_port(scheme: &str) -> &'static str {
    match scheme {
        "http" => "80",
        "https" => "443",
        "git" => "9418",
        "ftp" => "21",
        "ftps" => "990",
        _ => "22",
    }
}

fn remote(host: &str, port: Option<&str>, path: &str) -> Option<NormalizedOrigin> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let path = trim_path(&percent_decode(path));
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if host.is_empty() || path.is_empty() {
        return None;
    }
    let canonical = match port {
        Some(port) => format!("{host}:{port}/{path}"),
        None => format!("{host}/{path}"),
    };
    Some(NormalizedOrigin {
        canonical,
        local: false,
    })
}

fn local(path: &str) -> NormalizedOrigin {
    let trimmed = path.strip_suffix('/').unwrap_or(path);
    let trimmed = trimmed
        .strip_suffix(".git")
        .filter(|rest| !rest.is_empty() && !rest.ends_with('/'))
        .unwrap_or(trimmed);
    NormalizedOrigin {
        canonical: canonical_path(trimmed),
        local: true,
    }
}

fn canonical_path(path: &str) -> String {
    let absolute = path.starts_with('/');
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    match (absolute, parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}

/// The path without empty parts, its end without `.git`.
fn trim_path(path: &str) -> String {
    let mut parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if let Some(last) = parts.last_mut()
        && let Some(rest) = last.strip_suffix(".git")
    {
        *last = rest;
    }
    if parts.last() == Some(&"") {
        parts.pop();
    }
    parts.join("/")
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        if *first == b'%'
            && let (Some(high), Some(low)) = (digit(0), digit(1))
            && let Ok(byte) = u8::try_from(high * 16 + low)
        {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(url: &str) -> String {
        normalize_origin(url).unwrap().canonical
    }

    #[test]
    fn every_way_to_name_a_repository_is_one_project() {
        for url in [
            "git@example.com:team/tool.git",
            "git@EXAMPLE.com:team/tool",
            "example.com:team/tool.git",
            "git@example.com:/team/tool.git/",
            "ssh://git@example.com/team/tool.git",
            "ssh://git@example.com:22/team/tool",
            "git+ssh://git@example.com/team/tool",
            "SSH://git@Example.com./team/tool/",
            "https://example.com/team/tool",
            "https://example.com:443/team/tool.git",
            "https://user:pa%40ss@example.com/team/tool.git/",
            "https://token@example.com//team/./tool.git",
            "http://example.com:80/team/tool",
            "git://example.com:9418/team/tool.git",
            "  https://example.com/team/tool.git?x=1#y \n",
            "https://example.com/te%61m/tool",
        ] {
            assert_eq!(canonical(url), "example.com/team/tool", "{url}");
        }
        let identity = ProjectIdentity::from_origin("git@example.com:team/tool.git").unwrap();
        assert_eq!(identity.project_id, &sha256_hex(b"example.com/team/tool")[..16]);
        assert!(!identity.local);
    }

    #[test]
    fn what_differs_stays_different() {
        let urls = [
            "https://example.com/team/tool",
            "https://example.com/Team/tool",
            "https://example.com:8443/team/tool",
            "ssh://example.com:2222/team/tool",
            "https://example.org/team/tool",
            "https://example.com/team/tool/sub",
            "/example.com/team/tool",
            "ssh://[2001:db8::1]:2222/team/tool",
            "git@[2001:db8::1]:team/tool",
        ];
        let forms: std::collections::HashSet<String> = urls.iter().map(|url| canonical(url)).collect();
        assert_eq!(forms.len(), urls.len(), "{forms:?}");
        assert_eq!(canonical("git@[2001:DB8::1]:team/tool.git"), "[2001:db8::1]/team/tool");
        assert_eq!(
            canonical("ssh://git@[2001:db8::1]/team/tool"),
            "[2001:db8::1]/team/tool"
        );
    }

    #[test]
    fn paths_are_local_and_the_rest_is_refused() {
        for url in [
            "/srv/git/tool.git",
            "/srv/git/tool/",
            "file:///srv/git/tool.git",
            "file://localhost/srv//git/tool",
        ] {
            let origin = normalize_origin(url).unwrap();
            assert_eq!(
                (origin.canonical.as_str(), origin.local),
                ("/srv/git/tool", true),
                "{url}"
            );
        }
        assert_eq!(canonical("../tool.git"), "../tool");
        assert_eq!(canonical("./a:b"), "a:b");
        assert_eq!(canonical("file://server/share/tool.git"), "server/share/tool");
        for url in [
            "",
            "   ",
            "https://",
            "https:///x",
            "git@example.com:",
            "ssh://example.com/",
        ] {
            assert_eq!(normalize_origin(url), None, "{url:?}");
        }
    }

    #[test]
    fn without_an_origin_the_path_decides() {
        let resolve = ProjectIdentity::resolve;
        assert_eq!(
            resolve(None, Some("/work/a/"), "/work/a/b"),
            ProjectIdentity::from_path("/work/a")
        );
        assert_eq!(
            resolve(None, None, "/work/a/b"),
            ProjectIdentity::from_path("/work/a/b")
        );
        assert_eq!(
            resolve(Some(" "), Some("/work/a"), "/"),
            ProjectIdentity::from_path("/work/a")
        );
        assert!(resolve(None, None, "/").local);
        assert!(!resolve(Some("https://h/p"), Some("/work/a"), "/").local);
    }

    proptest! {
        #[test]
        fn any_text_is_normalised_without_a_panic_and_only_once(url in any::<String>()) {
            if let Some(origin) = normalize_origin(&url) {
                prop_assert!(!origin.canonical.is_empty());
            }
            let _ = ProjectIdentity::resolve(Some(&url), None, &url);
        }

        #[test]
        fn the_form_does_not_depend_on_the_way_in(
            host in "[a-z][a-z0-9]{0,8}(\\.[a-z]{2,4}){1,2}",
            path in "[A-Za-z0-9_-]{1,8}(/[A-Za-z0-9_-]{1,8}){0,3}",
            user in "[a-z]{1,6}",
        ) {
            let expected = format!("{host}/{path}");
            for url in [
                format!("{user}@{host}:{path}.git"),
                format!("ssh://{user}@{host}/{path}"),
                format!("https://{user}:x@{host}/{path}/"),
                format!("git://{host}/{path}.git"),
            ] {
                prop_assert_eq!(canonical(&url), expected.clone());
            }
        }
    }
}
