//! Refusals and close notices, in both forms.

use nexo_chat::Reason;
use nexo_wire::codes;
use nexo_wire::dialect::Echo;
use nexo_wire::dotted::payload::{
    CreateGroupResponse, KickedPush, LoginResponse, Refusal, RegisterResponse, SendResponse,
    ValidateTokenResponse,
};
use nexo_wire::dotted::{close_notice, refusal};
use serde_json::{Value, json};

use crate::{Payload, echo, heard};

/// A refusal in both forms.
fn refuses<P: Payload>(cmd: &str, reason: Reason, payload: &Value) {
    let answer = heard::<P>(|binary| Some(refusal(reason, &echo(cmd), binary)));
    let expect = json!({ "cmd": cmd, "request_id": "r1", "code": codes::row(reason).dotted,
        "message": reason.to_string(), "payload": payload });
    assert_eq!(answer, expect);
}

#[test]
fn refusals_fit_into_the_answers_they_replace() {
    for reason in Reason::ALL {
        let word = codes::row(*reason).typed;
        let error = reason.to_string();
        let payload = json!({ "success": false, "user_id": "", "error": error, "reason": word });
        refuses::<RegisterResponse>("auth.register", *reason, &payload);
        let payload = json!({ "success": false, "user_id": "", "token": "", "expire_at": 0,
            "error": error, "refresh_token": "", "reason": word });
        refuses::<LoginResponse>("auth.login", *reason, &payload);
        let payload = json!({ "user_id": "", "expire_at": 0, "reason": word });
        refuses::<ValidateTokenResponse>("auth.validate_token", *reason, &payload);
        let payload = json!({ "success": false, "msg_id": "", "timestamp": 0, "error": error,
            "seq": 0, "conversation_id": "", "client_msg_id": "", "reason": word });
        refuses::<SendResponse>("chat.send_message", *reason, &payload);
        let payload = json!({ "success": false, "group_id": "", "error": error, "reason": word });
        refuses::<CreateGroupResponse>("group.create", *reason, &payload);
        refuses::<Refusal>("chat.get_history", *reason, &json!({ "reason": word }));
    }
    let mut sent = echo("chat.send_message");
    sent.client_msg_id = Some("c-1".into());
    let answer = heard::<SendResponse>(|binary| Some(refusal(Reason::MissingTo, &sent, binary)));
    assert_eq!(answer["payload"]["client_msg_id"], "c-1");
}

#[test]
fn what_could_not_be_read_is_answered_too() {
    let nothing = Echo::default();
    let answer = heard::<Refusal>(|binary| Some(refusal(Reason::BadJson, &nothing, binary)));
    assert_eq!(answer["cmd"], "system.error");
    assert_eq!((&answer["request_id"], &answer["code"]), (&json!(""), &json!(605)));
    let answer = heard::<Refusal>(|binary| Some(refusal(Reason::MissingType, &echo(""), binary)));
    assert_eq!((&answer["cmd"], &answer["request_id"]), (&json!("system.error"), &json!("r1")));
}

#[test]
fn the_last_word() {
    let kicked = |reason: Reason, given: &Echo| {
        let answer = heard::<KickedPush>(|binary| Some(close_notice(reason, given, binary)));
        let row = codes::row(reason);
        let payload =
            json!({ "reason": row.typed, "message": reason.to_string(), "code": row.dotted });
        let expect = json!({ "cmd": "system.kicked", "request_id": "", "code": 0, "message": "",
            "payload": payload });
        assert_eq!(answer, expect);
    };
    for reason in [Reason::Kicked, Reason::SessionInvalid, Reason::TokenExpired] {
        kicked(reason, &Echo::default());
        kicked(reason, &echo("chat.get_history"));
    }
    for reason in [Reason::ShuttingDown, Reason::IdleTimeout, Reason::TooManyRequests] {
        kicked(reason, &Echo::default());
        let given = echo("chat.get_history");
        let answer = heard::<Refusal>(|binary| Some(close_notice(reason, &given, binary)));
        let refused = heard::<Refusal>(|binary| Some(refusal(reason, &given, binary)));
        assert_eq!(answer, refused);
    }
}
