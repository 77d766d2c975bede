//! An echo bot: says everything back, in private and, if it is spoken to, in groups.
//! `NEXO_USER=echo NEXO_PASSWORD=… cargo run --example echo_bot http://127.0.0.1:8080`
use std::env::{args, var};

use nexo_sdk::{Client, Content, Event, FileStore, MessageState, NewUser, Options, Reason};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = args().nth(1).unwrap_or_else(|| "http://127.0.0.1:8080".to_owned());
    let (user, password) = (var("NEXO_USER")?, var("NEXO_PASSWORD")?);
    // A restart goes on with what was not sent.
    let bot = Client::new(Options::new(url).store(FileStore::open(format!("{user}.store"))?))?;
    let mut events = bot.events();
    if !bot.resume().await? {
        match bot.register(&NewUser::new(&user, &password)).await {
            Err(error) if error.reason() != Some(Reason::UserExists) => return Err(error.into()),
            _ => bot.login(&user, &password).await?,
        }
    }
    while let Some(event) = events.next().await {
        match event {
            Event::Message(said) if !said.mine && said.state != MessageState::Preview => {
                let conversation = said.conversation_id.as_str();
                if !said.revoked && (conversation.starts_with("si_") || said.important) {
                    let answer = Content::text(&said.body).reply_to(&said.server_msg_id);
                    bot.send(conversation, answer).await?;
                }
                bot.mark_read(conversation, Some(said.seq)).await?;
            }
            Event::State(state) => eprintln!("{state:?}"),
            Event::Problem(error) => eprintln!("{error}"),
            _ => {}
        }
    }
    Ok(())
}
