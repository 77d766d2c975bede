//! The table of codes for the TypeScript client.

use std::fmt::Write;

use nexo_chat::Reason;

use crate::codes::{Close, CodeRow, row};

const HEAD: &str = r#"// Made from crates/wire/src/codes.rs by `make gen`.

/** One reason for a refusal, as the dialects and HTTP tell it. */
export interface Code {
  readonly numbered: number;
  readonly dotted: number;
  readonly http: number;
  /** The connection stays, stays unless it happens often, or ends with this close code. */
  readonly close: "stays" | "strike" | number;
  /** It passes by itself: the same request may succeed a little later. */
  readonly retry: boolean;
  readonly text: string;
}

/** Every reason by its word. */
export const codes = {
"#;

const TAIL: &str = r"} as const satisfies Record<string, Code>;

/** The word of a reason. */
export type Reason = keyof typeof codes;
";

/// The file `sdk/typescript/src/codes.ts`.
pub fn codes() -> String {
    let mut file = HEAD.to_owned();
    for reason in Reason::ALL {
        let CodeRow { typed, numbered, dotted, http, close, retry } = row(*reason);
        let close = match close {
            Close::Stays => "\"stays\"".to_owned(),
            Close::Strike => "\"strike\"".to_owned(),
            Close::Ends(code) => code.to_string(),
        };
        let text = serde_json::Value::from(reason.to_string());
        writeln!(
            file,
            "  {typed}: {{ numbered: {numbered}, dotted: {dotted}, http: {http}, close: {close}, \
             retry: {retry}, text: {text} }},",
        )
        .expect("writing to a string cannot fail");
    }
    file + TAIL
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_documentation_is_fresh() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let path = root.join("sdk/typescript/src/codes.ts");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, codes()).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(committed == codes(), "sdk/typescript/src/codes.ts is stale: run `make gen`");
    }
}
