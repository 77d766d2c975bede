//! Text and media, to and from stored content. The body of a text is the text; the body of media is the URL, with
//! caption and size in `extra`, where the other dialects find them.

use std::collections::BTreeMap;

use bytes::Bytes;
use nexo_chat::Reason;
use nexo_chat::model::{Content, ContentKind};

use super::payload::SendRequest;
use crate::enum_values::CONTENT_KINDS;

/// The text sent with media. Set whenever the body is a URL, since the body of custom content may be either.
const CAPTION: &str = "caption";
const FILE_SIZE: &str = "file_size";
/// The media type of the sender, if it is not one of `CONTENT_KINDS`.
const MEDIA_TYPE: &str = "media_type";

fn word(kind: ContentKind) -> &'static str {
    CONTENT_KINDS.iter().find(|(_, known)| *known == kind).map_or("custom", |(word, _)| word)
}

/// The content type of a `media_type`, which is a word or a MIME type.
fn kind(media_type: &str, has_url: bool) -> ContentKind {
    let name = media_type.to_ascii_lowercase();
    match name.split('/').next().unwrap_or_default() {
        "" | "text" if !has_url => ContentKind::TEXT,
        "" | "text" | "file" => ContentKind::FILE,
        "voice" => ContentKind::AUDIO,
        _ if name.contains('/') && !is_media_mime(&name) => ContentKind::FILE,
        top => CONTENT_KINDS
            .iter()
            .find(|(word, _)| *word == top)
            .map_or(ContentKind::CUSTOM, |it| it.1),
    }
}

fn is_media_mime(name: &str) -> bool {
    ["image/", "video/", "audio/"].iter().any(|top| name.starts_with(top))
}

pub(super) fn decode(request: SendRequest) -> Result<Content, Reason> {
    let SendRequest { content, media_url, media_type, file_size, mut extra, .. } = request;
    if file_size < 0 {
        return Err(Reason::InvalidParam);
    }
    let kind = kind(&media_type, !media_url.is_empty());
    if kind == ContentKind::TEXT {
        return Ok(Content { extra, ..Content::text(content) });
    }
    // `extra` must not have the keys of fields: one would silently replace the other.
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

/// The content fields of this dialect.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DottedContent {
    pub(super) content: String,
    pub(super) media_url: String,
    pub(super) media_type: String,
    pub(super) file_size: i64,
    /// The rest of `extra`.
    pub(super) extra: BTreeMap<String, String>,
}

/// Also encodes content that came in another dialect.
pub(super) fn encode(content: &Content) -> DottedContent {
    let body = String::from_utf8_lossy(&content.body).into_owned();
    let mut extra = content.extra.clone();
    if content.kind == ContentKind::TEXT {
        return DottedContent {
            content: body,
            media_type: "text".into(),
            extra,
            ..DottedContent::default()
        };
    }
    let media_type = extra.remove(MEDIA_TYPE).unwrap_or_else(|| word(content.kind).to_owned());
    let file_size = extra.get(FILE_SIZE).and_then(|size| size.parse().ok());
    if file_size.is_some() {
        extra.remove(FILE_SIZE);
    }
    let file_size = file_size.unwrap_or_default();
    match (content.kind, extra.remove(CAPTION)) {
        (ContentKind::CUSTOM, None) => DottedContent {
            content: body,
            media_type,
            file_size,
            extra,
            ..DottedContent::default()
        },
        (_, caption) => {
            let content = caption.unwrap_or_default();
            DottedContent { content, media_url: body, media_type, file_size, extra }
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
            let content = decode(request.clone()).unwrap();
            assert_eq!(content.kind, kind, "{request:?}");
            let expect = DottedContent {
                content: request.content.clone(),
                media_url: request.media_url.clone(),
                media_type: media_type.into(),
                file_size: if kind == ContentKind::TEXT { 0 } else { request.file_size },
                extra: request.extra.clone(),
            };
            assert_eq!(encode(&content), expect, "{request:?}");
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
            assert_eq!(decode(image), Err(Reason::InvalidParam), "{own}");
            // A text has none of these fields.
            let text =
                decode(SendRequest { extra: extra.clone(), ..sent("hi", "", "", 0) }).unwrap();
            assert_eq!(encode(&text).extra, extra);
        }
    }

    #[test]
    fn media_need_a_url_and_a_size_that_can_be() {
        for media_type in ["image", "voice", "video", "file", "image/png", "a/b"] {
            assert_eq!(decode(sent("x", "", media_type, 0)), Err(Reason::MissingBody));
        }
        assert_eq!(decode(sent("x", "", "", -1)), Err(Reason::InvalidParam));
    }

    #[test]
    fn what_other_dialects_sent_is_shown_too() {
        let image = Content { kind: ContentKind::IMAGE, ..Content::text("u") };
        let expect = DottedContent {
            media_url: "u".into(),
            media_type: "image".into(),
            ..DottedContent::default()
        };
        assert_eq!(encode(&image), expect);
        let own = Content { kind: ContentKind::CUSTOM, ..Content::text("{}") };
        let expect = DottedContent {
            content: "{}".into(),
            media_type: "custom".into(),
            ..DottedContent::default()
        };
        assert_eq!(encode(&own), expect);
        let odd = BTreeMap::from([(FILE_SIZE.to_owned(), "large".to_owned())]);
        let message_push = encode(&Content { extra: odd.clone(), ..image });
        assert_eq!((message_push.file_size, message_push.extra), (0, odd));
    }
}
