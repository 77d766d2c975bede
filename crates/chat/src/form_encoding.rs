//! Text in the queries of addresses and in forms.

/// Parameters as in the query of an address or in a form.
pub fn form_encode(parameters: &[(&str, &str)]) -> String {
    let pairs = parameters.iter().map(|(name, value)| {
        let mut pair = percent_encode(name);
        pair.push('=');
        pair.push_str(&percent_encode(value));
        pair
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// Text with everything but unreserved characters escaped.
pub fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => {
                encoded.push('%');
                encoded.push_str(&data_encoding::HEXUPPER.encode(&[byte]));
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_escaped() {
        let encoded = form_encode(&[("scope", "openid e"), ("u", "https://a/b?c&d=é")]);
        assert_eq!(encoded, "scope=openid%20e&u=https%3A%2F%2Fa%2Fb%3Fc%26d%3D%C3%A9");
    }
}
