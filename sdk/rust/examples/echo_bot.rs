//! An echo bot: answers private messages, and group messages that mention it or reply to it.
//! `NEXO_USER=echo NEXO_PASSWORD=… cargo run --example echo_bot http://127.0.0.1:8080`
use std::env::{args, var};

use nexo_sdk::{Client, Content, Event, FileStore, MessageState, NewUser, Options, Reason};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = args().nth(1).unwrap_or_else(|| "http://127.0.0.1:8080".to_owned());
    let (user, password) = (var("NEXO_USER")?, var("NEXO_PASSWORD")?);
    // Keeps the sign-in and unsent messages across restarts.
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
            Event::Message(message)
                if !message.is_mine && message.state != MessageState::Preview =>
            {
                let conversation = message.conversation_id.as_str();
                if !message.is_recalled && (conversation.starts_with("si_") || message.is_important)
                {
                    let answer = Content::text(&message.body).reply_to(&message.server_msg_id);
                    bot.send(conversation, answer).await?;
                }
                bot.mark_read(conversation, Some(message.seq)).await?;
            }
            Event::State(state) => eprintln!("{state:?}"),
            Event::Problem(error) => eprintln!("{error}"),
            _ => {}
        }
    }
    Ok(())
}
