//! The list of requests: number, name, request type, reply type.
//!
//! Numbers are never changed and never used again; a retired one stays here as a comment.

use crate::pb::{self, manager, mds, oss};
use prost::Message as _;
use weft_model::{ErrorKind, FsError, Result, TargetKind};

/// A request type, tied to its reply type.
pub trait Message: Sized {
    /// What answers it.
    type Reply;
    /// As one of all requests.
    fn into_request(self) -> Request;
    /// Picks the reply out of all replies.
    ///
    /// # Errors
    /// `Protocol` when the answer belongs to another request.
    fn reply(reply: Reply) -> Result<Self::Reply>;
}

macro_rules! messages {
    ($($number:literal $role:ident $name:ident: $request:ty => $reply:ty;)*) => {
        /// Any request.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum Request { $($name($request),)* }

        /// Any successful reply, named by its request.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum Reply { $($name($reply),)* }

        $(impl Message for $request {
            type Reply = $reply;
            fn into_request(self) -> Request { Request::$name(self) }
            fn reply(reply: Reply) -> Result<$reply> {
                match reply {
                    Reply::$name(reply) => Ok(reply),
                    _ => Err(FsError::new(ErrorKind::Protocol, stringify!($name))),
                }
            }
        })*

        impl Request {
            /// The number in the frame header.
            pub const fn number(&self) -> u16 {
                match self { $(Request::$name(_) => $number,)* }
            }

            /// The request's name, for logs and metrics.
            pub const fn name(&self) -> &'static str {
                match self { $(Request::$name(_) => stringify!($name),)* }
            }

            /// Which kind of target answers it.
            pub const fn role(&self) -> TargetKind {
                match self { $(Request::$name(_) => TargetKind::$role,)* }
            }

            /// Appends the encoded body.
            pub fn encode(&self, out: &mut Vec<u8>) {
                match self { $(Request::$name(body) => body.encode_raw(out),)* }
            }

            /// Decodes the body of request `number`.
            ///
            /// # Errors
            /// `Protocol` for a malformed body, `NotImplemented` for a number unknown to this version.
            pub fn decode(number: u16, body: &[u8]) -> Result<Request> {
                match number {
                    $($number => <$request>::decode(body).map(Request::$name).map_err(malformed),)*
                    _ => Err(FsError::new(ErrorKind::NotImplemented, "decode request")
                        .on(format_args!("number={number:#06x}"))),
                }
            }
        }

        impl Reply {
            /// The number of the request this answers.
            pub const fn number(&self) -> u16 {
                match self { $(Reply::$name(_) => $number,)* }
            }

            /// Appends the encoded body.
            pub fn encode(&self, out: &mut Vec<u8>) {
                match self { $(Reply::$name(body) => body.encode_raw(out),)* }
            }

            /// Decodes the body of the reply to request `number`.
            ///
            /// # Errors
            /// `Protocol`.
            pub fn decode(number: u16, body: &[u8]) -> Result<Reply> {
                match number {
                    $($number => <$reply>::decode(body).map(Reply::$name).map_err(malformed),)*
                    _ => Err(FsError::new(ErrorKind::Protocol, "decode reply")
                        .on(format_args!("number={number:#06x}"))),
                }
            }
        }

        /// Every request's number and name.
        pub const ALL: &[(u16, &str)] = &[$(($number, stringify!($name)),)*];
    };
}

fn malformed(error: prost::DecodeError) -> FsError {
    FsError::new(ErrorKind::Protocol, "decode message").because(error)
}

messages! {
    0x0101 Mgt GetMap: manager::GetMap => manager::GetMapReply;
    0x0102 Mgt RegisterClient: manager::RegisterClient => manager::RegisterClientReply;
    0x0103 Mgt RenewClient: manager::RenewClient => pb::Empty;
    0x0104 Mgt Heartbeat: manager::Heartbeat => manager::HeartbeatReply;
    0x0105 Mgt AllocateSequence: manager::AllocateSequence => manager::AllocateSequenceReply;
    0x0106 Mgt ListClients: manager::ListClients => manager::ListClientsReply;
    0x0107 Mgt SetTargetState: manager::SetTargetState => pb::Empty;
    0x0108 Mgt SetPool: manager::SetPool => pb::Empty;
    0x0109 Mgt NodeStats: pb::NodeStats => pb::NodeStatsReply;
    0x010a Mgt Remove: manager::Remove => pb::Empty;

    0x0201 Mdt OpenSession: mds::OpenSession => mds::OpenSessionReply;
    0x0202 Mdt RenewSession: mds::RenewSession => pb::Empty;
    0x0203 Mdt CloseSession: mds::CloseSession => pb::Empty;
    0x0204 Mdt Reclaim: mds::Reclaim => pb::Empty;
    0x0205 Mdt AwaitRecalls: mds::AwaitRecalls => mds::AwaitRecallsReply;
    0x0210 Mdt Lookup: mds::Lookup => mds::LookupReply;
    0x0211 Mdt GetAttr: mds::GetAttr => mds::Entry;
    0x0212 Mdt SetAttr: mds::SetAttr => mds::Entry;
    0x0213 Mdt Access: mds::Access => pb::Empty;
    0x0220 Mdt Create: mds::Create => mds::CreateReply;
    0x0221 Mdt Mknod: mds::Mknod => mds::Entry;
    0x0222 Mdt Mkdir: mds::Mkdir => mds::Entry;
    0x0223 Mdt Symlink: mds::Symlink => mds::Entry;
    0x0224 Mdt Tmpfile: mds::Tmpfile => mds::CreateReply;
    0x0225 Mdt Link: mds::Link => mds::Entry;
    0x0226 Mdt Unlink: mds::Unlink => mds::Removed;
    0x0227 Mdt Rmdir: mds::Rmdir => mds::Removed;
    0x0228 Mdt Rename: mds::Rename => pb::Empty;
    0x0229 Mdt Readlink: mds::Readlink => mds::ReadlinkReply;
    0x0230 Mdt Open: mds::Open => mds::Entry;
    0x0231 Mdt Close: mds::Close => pb::Empty;
    0x0232 Mdt UpdateWritten: mds::UpdateWritten => pb::Empty;
    0x0233 Mdt Fsync: mds::Fsync => pb::Empty;
    0x0234 Mdt SyncTarget: mds::SyncTarget => pb::Empty;
    0x0235 Mdt Append: mds::Append => mds::AppendReply;
    0x0236 Mdt ReadInline: mds::ReadInline => mds::ReadInlineReply;
    0x0237 Mdt MoveOut: mds::MoveOut => pb::Empty;
    0x0240 Mdt Readdir: mds::Readdir => mds::ReaddirReply;
    0x0250 Mdt GetXattr: mds::GetXattr => mds::GetXattrReply;
    0x0251 Mdt SetXattr: mds::SetXattr => pb::Empty;
    0x0252 Mdt ListXattr: mds::ListXattr => mds::ListXattrReply;
    0x0253 Mdt RemoveXattr: mds::RemoveXattr => pb::Empty;
    0x0260 Mdt Lock: mds::Lock => mds::LockReply;
    0x0261 Mdt TestLock: mds::TestLock => mds::TestLockReply;
    0x0262 Mdt CancelLock: mds::CancelLock => pb::Empty;
    0x0263 Mdt AwaitLock: mds::AwaitLock => mds::AwaitLockReply;
    0x0270 Mdt SetLayout: mds::SetLayout => pb::Empty;
    0x0271 Mdt GetLayout: mds::GetLayout => mds::GetLayoutReply;
    0x0272 Mdt FidToPath: mds::FidToPath => mds::FidToPathReply;
    0x0273 Mdt MdtStatfs: mds::Statfs => mds::StatfsReply;
    0x0274 Mdt ScrubTarget: mds::ScrubTarget => mds::ScrubTargetReply;
    0x0275 Mdt CheckObjects: mds::CheckObjects => mds::CheckObjectsReply;

    0x0301 Ost Write: oss::Write => oss::WriteReply;
    0x0302 Ost Read: oss::Read => oss::ReadReply;
    0x0303 Ost Sync: oss::Sync => pb::Empty;
    0x0304 Ost Stat: oss::Stat => oss::StatReply;
    0x0305 Ost Truncate: oss::Truncate => pb::Empty;
    0x0306 Ost Punch: oss::Punch => pb::Empty;
    0x0307 Ost Allocate: oss::Allocate => pb::Empty;
    0x0308 Ost Seek: oss::Seek => oss::SeekReply;
    0x0309 Ost Destroy: oss::Destroy => pb::Empty;
    0x030a Ost OstStatfs: oss::Statfs => oss::StatfsReply;
    0x030b Ost Scrub: oss::Scrub => oss::ScrubReply;
    0x030c Ost ListObjects: oss::ListObjects => oss::ListObjectsReply;
    0x030d Ost Clock: oss::Clock => oss::Moment;
}

impl Request {
    /// Whether it sets what it says and no more, so that sending it anew, with what is to be said by then,
    /// is as good as its first answer. These also report what was written, of which there may be more by then.
    pub const fn is_repeatable(&self) -> bool {
        use Request::*;
        matches!(self, SetAttr(_) | Close(_) | UpdateWritten(_) | Fsync(_))
    }

    /// Whether the request changes a metadata target, so that resending it needs a slot of the reply
    /// cache. Requests to OSTs carry absolute offsets and need none.
    pub const fn is_modifying(&self) -> bool {
        use Request::*;
        matches!(
            self,
            SetAttr(_)
                | Create(_)
                | Mknod(_)
                | Mkdir(_)
                | Symlink(_)
                | Tmpfile(_)
                | Link(_)
                | Unlink(_)
                | Rmdir(_)
                | Rename(_)
                | Open(_)
                | Close(_)
                | UpdateWritten(_)
                | Fsync(_)
                | Append(_)
                | SetXattr(_)
                | RemoveXattr(_)
                | SetLayout(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_are_unique_and_tell_the_role() {
        let mut seen = HashSet::new();
        for (number, name) in ALL {
            assert!(seen.insert(number), "{name}");
        }
    }

    #[test]
    fn bodies_round_trip() {
        let request = Request::Unlink(mds::Unlink { parent: 7, name: b"x".to_vec(), cred: None });
        let mut body = Vec::new();
        request.encode(&mut body);
        assert_eq!(Request::decode(request.number(), &body).unwrap(), request);
        assert_eq!(Request::decode(0x7fff, &body).unwrap_err().kind, ErrorKind::NotImplemented);
    }

    #[test]
    fn random_bodies_never_panic() {
        use rand::{Rng, SeedableRng, rngs::SmallRng};
        let mut rng = SmallRng::seed_from_u64(1);
        for _ in 0..200_000 {
            let (number, _) = ALL[rng.random_range(0..ALL.len())];
            let body: Vec<u8> = (0..rng.random_range(0..64)).map(|_| rng.random()).collect();
            let _ = Request::decode(number, &body);
            let _ = Reply::decode(number, &body);
        }
    }
}
