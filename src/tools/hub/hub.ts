import { VISIBILITIES } from "../../config/hub.ts"
import { choice, flag, type Infer, integer, listOf, mapOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

const removedShape = listOf(
  object({
    what: text(),
    count: integer(),
    earlier: optional(flag("The secret was already removed when dex read the conversation.")),
  }),
  "The secrets that were removed. dex finds many, but not all.",
)
const summaryShape = object({
  project: text("The project's folder."),
  key: text("Its name on the hub."),
  other_key: optional(text("Another remote of the repository, which is a project on the hub already.")),
  what: listOf(text()),
  visibility: text(),
  since: optional(text()),
  conversations: integer("Conversations that would be sent."),
  messages: integer(),
  text_bytes: integer("Size of their text before it is redacted again and compressed."),
  staying: mapOf(integer(), "Conversations of the project that are not sent, by reason."),
})

const storedShape = object({
  bytes: integer("Size of what the hub stores, uncompressed."),
  quota_bytes: integer("The largest size allowed."),
})

const input = object({
  words: listOf(
    text(),
    "login ADDRESS, status, share [PROJECT], unshare [PROJECT], hold REF, push, requests [approve MEMBER, deny MEMBER], grant MEMBER [PROJECT], members [PROJECT], tokens [revoke ID], admin (administer the hub: dex hub admin --help), or logout. Without one: status.",
  ),
  token_stdin: optional(flag("login: read the token from standard input.")),
  paste: optional(flag("login: ask for a token or an invitation, even if the hub has an identity provider.")),
  name: optional(
    text("share: the project's name on the hub. Without it: its git remote, for example github.com/acme/api."),
  ),
  with: optional(listOf(text(), "share: also send thinking or images.")),
  without: optional(listOf(text(), "share: do not send said, called or returned.")),
  from: optional(text("share: only conversations that began on this day or later.")),
  visibility: optional(
    choice(VISIBILITIES, "share: who can read it on the hub: only you, the project's members, or everyone."),
  ),
  level: optional(
    choice(
      ["read", "write", "own", "none"] as const,
      "grant: what the member may do: read, also push (the default), also decide who gets access, or nothing.",
    ),
  ),
  dry_run: optional(flag("share: show exactly what would be sent, and send nothing.")),
  session: optional(text("share --dry-run: only this conversation: current, or a ref.")),
  forget: optional(flag("unshare, hold: also delete on the hub what was sent. It cannot be sent again.")),
  off: optional(flag("hold: allow the conversation to be sent again.")),
  quiet: optional(flag("push: print nothing, and do nothing if the next attempt is not due yet.")),
  yes: optional(flag("Do not ask for confirmation.")),
})
export type HubInput = Infer<typeof input>

export const hub = defineTool({
  name: "hub",
  summary: "Share chosen projects with your team",
  input,
  renamed: { as: "name", since: "from", preview: "dry_run", conversation: "session" },
  output: object({
    address: optional(text("The hub.")),
    tenant: optional(text()),
    member: optional(text("Who you are there.")),
    logged_in: optional(flag()),
    reachable: optional(flag("status: the hub answered just now.")),
    problem: optional(text("Why not everything was sent.")),
    notices: optional(listOf(text(), "Your conversations that an admin of the hub read, with the reason.")),
    stored: optional(object({ yours: optional(storedShape), team: optional(storedShape) })),
    shared: optional(
      listOf(
        object({
          project: text(),
          key: text(),
          what: listOf(text()),
          visibility: text(),
          since: optional(text()),
          sent: integer("Conversations that the hub has."),
          refused: integer("Conversations that the hub rejected."),
          deleted: integer("Conversations that were deleted on the hub, and are not sent again."),
          paused: optional(text("Why nothing of the project is sent now.")),
        }),
      ),
    ),
    waiting: optional(integer("Changed conversations that the next push will examine.")),
    leaving: optional(integer("Conversations that the next push will delete on the hub.")),
    held: optional(listOf(text(), "Refs of conversations that are held back, with their subagents.")),
    refused: optional(listOf(object({ id: text(), why: text() }), "Conversations that the hub rejected.")),
    quarantined: optional(
      listOf(
        object({ id: text(), at: text(), rules: listOf(text()) }),
        "status: hidden from others on the hub, because newer rules found what looks like a secret.",
      ),
    ),
    receipts: optional(
      listOf(
        object({
          at: text(),
          conversations: integer(),
          why: text("person, retention, admin or quarantine."),
          by: optional(text("Who deleted it; absent if the hub did, by a rule.")),
          key_gone_at: optional(text("When its key was deleted from the hub's files; absent until then.")),
          words_gone_at: optional(text("When no disk of OpenSearch had its hashed words any more.")),
          words_wait_for: optional(
            listOf(text(), "The nodes of OpenSearch whose disks may still have its hashed words."),
          ),
        }),
        "status: your conversations that were deleted on the hub.",
      ),
    ),
    tokens: optional(
      listOf(
        object({
          id: integer(),
          name: text(),
          kind: text(),
          scopes: listOf(text()),
          created_at: text(),
          expires_at: optional(text()),
          last_used_at: optional(text("The day.")),
          revoked_at: optional(text()),
        }),
        "tokens: your tokens, without their secrets.",
      ),
    ),
    requests: optional(
      listOf(
        object({ project: text(), member: text(), at: text() }),
        "requests: members who asked to share a project that you own.",
      ),
    ),
    requests_waiting: optional(integer("status: requests that are waiting for your answer.")),
    access: optional(
      object({
        member: text(),
        project: text(),
        level: optional(text("The member's new level; absent if the request was denied.")),
      }),
    ),
    members: optional(
      listOf(
        object({
          name: text(),
          level: text("read, write or own."),
          group_level: optional(text("The level that comes from a group of the identity provider.")),
        }),
        "members: who has access to the project.",
      ),
    ),
    revoked: optional(integer("tokens revoke: the token that was revoked.")),
    pushed_at: optional(text("When everything was last sent.")),
    next_try_at: optional(text("When dex will try again automatically.")),
    summary: optional(summaryShape),
    preview: optional(
      object({
        conversations: listOf(
          object({
            id: text(),
            title: text(),
            messages: integer(),
            chunks: integer(),
            bytes: integer("Size of the conversation as it would be sent, compressed."),
            taken_out: removedShape,
            left_out: mapOf(integer(), "Parts and effects that stay here, by kind."),
            head: optional(text("The conversation without its messages, exactly as it is sent.")),
            lines: optional(
              text("The messages, one JSON object per line: the bytes that are sent, before compression."),
            ),
          }),
        ),
        bytes: integer(),
        taken_out: removedShape,
        truncated: optional(text("What the preview leaves out, and how to see it.")),
      }),
    ),
    pushed: optional(
      object({
        busy: flag("Another dex process is sending."),
        sent: integer("Conversations that were sent."),
        removed: integer("Conversations that were deleted on the hub."),
        refused: integer("Conversations that the hub rejected."),
        bytes: integer(),
        complete: flag("Everything was sent."),
      }),
    ),
    unshared: optional(text("The project that is no longer shared.")),
    on_hub: optional(integer("Conversations of the project that the hub has.")),
    logged_out: optional(flag()),
    asked: optional(flag("Nothing was done yet: call again with `yes` to confirm.")),
  }),
  cli: {
    group: "Keep",
    positional: "words",
    short: { y: "yes" },
    example: "dex hub share --dry-run",
    forms: {
      "dex hub login ADDRESS": "Log in, in a browser or with a token",
      "dex hub share": "Share this project, after asking you",
      "dex hub share --dry-run": "Show what would be sent",
      "dex hub hold 3": "Never send one conversation",
      "dex hub requests": "List who asks to share your projects; approve NAME gives access",
      "dex hub grant bob": "Give someone access to this project",
      "dex hub members": "List who has access to this project",
      "dex hub tokens": "List your tokens; revoke ID revokes one",
      "dex hub admin": "Administer a hub: tenants, members, tokens, the audit log",
      "dex hub unshare --forget": "Stop sharing, and delete what was sent",
    },
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
})
