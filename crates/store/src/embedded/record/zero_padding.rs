//! Reads a record of an older version as if zeros followed its end.

use postcard::Error;
use postcard::de_flavors::Flavor;
use serde::Deserialize;

/// The payload, followed by zeros for the fields that it does not have.
pub(super) struct ZeroPaddedReader<'de> {
    rest: &'de [u8],
}

impl<'de> ZeroPaddedReader<'de> {
    /// Decodes the record at the start of a payload, and returns the rest of the payload.
    pub(super) fn take<T: Deserialize<'de>>(payload: &'de [u8]) -> Result<(T, &'de [u8]), Error> {
        let mut reader = postcard::Deserializer::from_flavor(Self { rest: payload });
        let record = T::deserialize(&mut reader)?;
        Ok((record, reader.finalize()?))
    }
}

impl<'de> Flavor<'de> for ZeroPaddedReader<'de> {
    type Remainder = &'de [u8];
    type Source = &'de [u8];

    fn pop(&mut self) -> Result<u8, Error> {
        let Some((first, rest)) = self.rest.split_first() else { return Ok(0) };
        self.rest = rest;
        Ok(*first)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }

    /// A missing text has length zero, so no valid record takes bytes beyond the end.
    fn try_take_n(&mut self, count: usize) -> Result<&'de [u8], Error> {
        let split = self.rest.split_at_checked(count);
        let (taken, rest) = split.ok_or(Error::DeserializeUnexpectedEnd)?;
        self.rest = rest;
        Ok(taken)
    }

    fn finalize(self) -> Result<&'de [u8], Error> {
        Ok(self.rest)
    }
}
