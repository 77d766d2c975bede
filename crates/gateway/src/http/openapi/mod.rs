//! The `OpenAPI` document, made from the same table of paths as the router.

pub(super) mod describe;
pub(super) mod docs_page;
pub(super) mod document;
pub(super) mod flatten;
pub(super) mod paths;
pub(super) mod refusals;
