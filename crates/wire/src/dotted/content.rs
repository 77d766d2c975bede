//! Text and media, to and from what is stored. A text is its body. Of media the body is the URL;
//! what was said with it and its size are kept in `extra`, where the other dialects find them.

use std::collections::BTreeMap;

use bytes::Bytes;
use nexo_chat::Reason;
use nexo_chat::model::{Content, ContentKind};

use super::payload::SendRequest;

/// What a content type is called here.
const WORDS: [(&str, ContentKind); 6] = [
    ("text", ContentKind::TEXT),
    ("image", ContentKind::IMAGE),
    ("video", ContentKind::VIDEO),
    ("audio", ContentKind::AUDIO),
    ("file", ContentKind::FILE),
    ("custom", ContentKind::CUSTOM),
];

/// What was said with a medium. There whenever the body is a URL, so that the app's own content can
/// be either.
const CAPTION: &str = "caption";
/// Bytes of a medium.
const FILE_SIZE: &str = "file_size";
/// What the sender called its type, where it is not our word.
const MEDIA_TYPE: &str = "media_type";

fn word(kind: ContentKind) -> &'static str {
    WORDS.iter().find(|(_, known)| *known == kind).map_or("custom", |(word, _)| word)
}

/// The content type of what a client calls it: a word, or a MIME type.
fn kind(media_type: &str, has_url: bool) -> ContentKind {
    let name = media_type.to_ascii_lowercase();
    match name.split('/').next().unwrap_or_default() {
        "" | "text" if !has_url => ContentKind::TEXT,
        "" | "text" | "file" => ContentKind::FILE,
        "voice" => ContentKind::AUDIO,
        _ if name.contains('/') && !is_word(&name) => ContentKind::FILE,
        top => WORDS.iter().find(|(word, _)| *word == top).map_or(ContentKind::CUSTOM, |it| it.1),
    }
}

/// Whether a MIME type is one of a picture, film or recording.
fn is_word(name: &str) -> bool {
    ["image/", "video/", "audio/"].iter().any(|top| name.starts_with(top))
}

/// Reads what is said.
pub(super) fn read(request: SendRequest) -> Result<Content, Reason> {
    let SendRequest { content, media_url, media_type, file_size, mut extra, .. } = request;
    if file_size < 0 {
        return Err(Reason::InvalidParam);
    }
    let kind = kind(&media_type, !media_url.is_empty());
    if kind == ContentKind::TEXT {
        return Ok(Content { extra, ..Content::text(content) });
    }
    // What has a field of its own is said there, so that neither replaces the other unseen.
    if [CAPTION, FILE_SIZE, MEDIA_TYPE].iter().any(|own| extra.contains_key(*own)) {
        return Err(Reason::InvalidParam);
    }
    let is_named_otherwise = !matches!(&*media_type, "" | "text") && media_type != word(kind);
    if is_named_otherwise {
        extra.insert(MEDIA_TYPE.to_owned(), media_type);
    }
    if file_size > 0 {
        extra.insert(FILE_SIZE.to_owned(), file_size.to_string());
    }
    let body = if media_url.is_empty() && kind == ContentKind::CUSTOM {
        content
    } else if media_url.is_empty() {
        return Err(Reason::MissingBody);
    } else {
        extra.insert(CAPTION.to_owned(), content);
        media_url
    };
    Ok(Content { kind, extra, ..Content::text(Bytes::from(body)) })
}

/// A content as this dialect shows it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) content: String,
    pub(super) media_url: String,
    pub(super) media_type: String,
    pub(super) file_size: i64,
    /// What no field shows.
    pub(super) extra: BTreeMap<String, String>,
}

/// Shows what was said, in whatever dialect it was.
pub(super) fn show(content: &Content) -> Shown {
    let body = String::from_utf8_lossy(&content.body).into_owned();
    let mut extra = content.extra.clone();
    if content.kind == ContentKind::TEXT {
        return Shown { content: body, media_type: "text".into(), extra, ..Shown::default() };
    }
    let media_type = extra.remove(MEDIA_TYPE).unwrap_or_else(|| word(content.kind).to_owned());
    let file_size = extra.get(FILE_SIZE).and_then(|size| size.parse().ok());
    if file_size.is_some() {
        extra.remove(FILE_SIZE);
    }
    let file_size = file_size.unwrap_or_default();
    match (content.kind, extra.remove(CAPTION)) {
        (ContentKind::CUSTOM, None) => {
            Shown { content: body, media_type, file_size, extra, ..Shown::default() }
        }
        (_, caption) => {
            let content = caption.unwrap_or_default();
            Shown { content, media_url: body, media_type, file_size, extra }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(content: &str, media_url: &str, media_type: &str, file_size: i64) -> SendRequest {
        SendRequest {
            content: content.into(),
            media_url: media_url.into(),
            media_type: media_type.into(),
            file_size,
            ..SendRequest::default()
        }
    }

    #[test]
    fn what_is_sent_is_shown() {
        let check = |request: SendRequest, kind: ContentKind, media_type: &str| {
            let content = read(request.clone()).unwrap();
            assert_eq!(content.kind, kind, "{request:?}");
            let expect = Shown {
                content: request.content.clone(),
                media_url: request.media_url.clone(),
                media_type: media_type.into(),
                file_size: if kind == ContentKind::TEXT { 0 } else { request.file_size },
                extra: request.extra.clone(),
            };
            assert_eq!(show(&content), expect, "{request:?}");
        };
        check(sent("hi", "", "", 0), ContentKind::TEXT, "text");
        check(sent("hi", "", "text", 7), ContentKind::TEXT, "text");
        check(sent("", "u", "image", 0), ContentKind::IMAGE, "image");
        check(sent("look", "u", "IMAGE", 9), ContentKind::IMAGE, "IMAGE");
        check(sent("look", "u", "image/png", 9), ContentKind::IMAGE, "image/png");
        check(sent("", "u", "voice", 9), ContentKind::AUDIO, "voice");
        check(sent("", "u", "audio", i64::MAX), ContentKind::AUDIO, "audio");
        check(sent("", "u", "video", 1), ContentKind::VIDEO, "video");
        check(sent("", "u", "file", 1), ContentKind::FILE, "file");
        check(sent("", "u", "application/pdf", 1), ContentKind::FILE, "application/pdf");
        check(sent("", "u", "", 1), ContentKind::FILE, "file");
        check(sent("x", "u", "text", 1), ContentKind::FILE, "file");
        check(sent("{}", "", "place", 0), ContentKind::CUSTOM, "place");
        check(sent("", "u", "place", 0), ContentKind::CUSTOM, "place");
        check(sent("here", "u", "place", 3), ContentKind::CUSTOM, "place");
        check(sent("{}", "", "custom", 0), ContentKind::CUSTOM, "custom");
        let extra = || BTreeMap::from([("colour".to_owned(), "red".to_owned())]);
        check(SendRequest { extra: extra(), ..sent("hi", "", "", 0) }, ContentKind::TEXT, "text");
        let named = SendRequest { extra: extra(), ..sent("look", "u", "IMAGE", 9) };
        check(named, ContentKind::IMAGE, "IMAGE");
    }

    #[test]
    fn what_has_a_field_is_not_said_in_extra() {
        for own in [CAPTION, FILE_SIZE, MEDIA_TYPE] {
            let extra = BTreeMap::from([(own.to_owned(), "1".to_owned())]);
            let image = SendRequest { extra: extra.clone(), ..sent("", "u", "image", 0) };
            assert_eq!(read(image), Err(Reason::InvalidParam), "{own}");
            // A text has none of these fields.
            let text = read(SendRequest { extra: extra.clone(), ..sent("hi", "", "", 0) }).unwrap();
            assert_eq!(show(&text).extra, extra);
        }
    }

    #[test]
    fn media_need_a_url_and_a_size_that_can_be() {
        for media_type in ["image", "voice", "video", "file", "image/png", "a/b"] {
            assert_eq!(read(sent("x", "", media_type, 0)), Err(Reason::MissingBody));
        }
        assert_eq!(read(sent("x", "", "", -1)), Err(Reason::InvalidParam));
    }

    #[test]
    fn what_other_dialects_sent_is_shown_too() {
        let image = Content { kind: ContentKind::IMAGE, ..Content::text("u") };
        let expect =
            Shown { media_url: "u".into(), media_type: "image".into(), ..Shown::default() };
        assert_eq!(show(&image), expect);
        let own = Content { kind: ContentKind::CUSTOM, ..Content::text("{}") };
        let expect =
            Shown { content: "{}".into(), media_type: "custom".into(), ..Shown::default() };
        assert_eq!(show(&own), expect);
        let odd = BTreeMap::from([(FILE_SIZE.to_owned(), "large".to_owned())]);
        let shown = show(&Content { extra: odd.clone(), ..image });
        assert_eq!((shown.file_size, shown.extra), (0, odd));
    }
}
