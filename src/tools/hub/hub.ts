import { VISIBILITIES } from "../../config/hub.ts"
import { choice, flag, type Infer, integer, listOf, mapOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

const takenOutShape = listOf(
  object({ what: text(), count: integer(), earlier: optional(flag("It was taken out when dex read it.")) }),
  "What is not in it: dex finds many secrets, not all.",
)
const summaryShape = object({
  project: text("The project's folder."),
  key: text("What the hub calls it."),
  what: listOf(text()),
  visibility: text(),
  since: optional(text()),
  conversations: integer("Conversations that would be sent."),
  messages: integer(),
  text_bytes: integer("Size of their text before it is redacted again and compressed."),
  staying: mapOf(integer(), "Conversations of the project that are not sent, by reason."),
})

const storedShape = object({
  bytes: integer("What the hub keeps, unpacked."),
  quota_bytes: integer("What it may be at most."),
})

const input = object({
  words: listOf(
    text(),
    "login ADDRESS, status, share [PROJECT], unshare [PROJECT], hold REF, push, requests [approve MEMBER, deny MEMBER], grant MEMBER [PROJECT], members [PROJECT], tokens [revoke ID], or logout. Without one: status.",
  ),
  token_stdin: optional(flag("login: read the token from standard input.")),
  paste: optional(flag("login: ask for a token or an invitation, also if the hub has an identity provider.")),
  as: optional(text("share: what the hub calls the project. Without it: its git remote, as github.com/acme/api.")),
  with: optional(listOf(text(), "share: also send thinking or images.")),
  without: optional(listOf(text(), "share: do not send said, called or returned.")),
  since: optional(text("share: only conversations that began on this day or later.")),
  visibility: optional(
    choice(VISIBILITIES, "share: who can read it on the hub: only you, the project's members, or everyone."),
  ),
  level: optional(
    choice(
      ["read", "write", "own", "none"] as const,
      "grant: what the member may do: read, also push (the default), also decide who is let in, or nothing.",
    ),
  ),
  preview: optional(flag("share: show exactly what would be sent, and send nothing.")),
  conversation: optional(text("share --preview: only this conversation.")),
  forget: optional(flag("unshare, hold: also delete on the hub what was sent. It cannot be sent again.")),
  off: optional(flag("hold: no longer hold it back.")),
  quiet: optional(flag("push: print nothing, and do nothing until the next attempt is due.")),
  yes: optional(flag("Do not ask.")),
})
export type HubInput = Infer<typeof input>

export const hub = defineTool({
  name: "hub",
  summary: "Share chosen projects with your team",
  input,
  output: object({
    address: optional(text("The hub.")),
    tenant: optional(text()),
    member: optional(text("Who you are there.")),
    logged_in: optional(flag()),
    reachable: optional(flag("status: the hub answered just now.")),
    problem: optional(text("Why not everything was sent.")),
    notices: optional(listOf(text(), "What an admin of the hub read of yours, with the reason.")),
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
          refused: integer("Conversations that the hub did not take."),
          deleted: integer("Conversations that were deleted on the hub, and are not sent again."),
          paused: optional(text("Why nothing of it is sent now.")),
        }),
      ),
    ),
    waiting: optional(integer("Changed conversations that the next push looks at.")),
    leaving: optional(integer("Conversations that the next push deletes on the hub.")),
    held: optional(listOf(text(), "Refs of conversations that are held back, with their subagents.")),
    refused: optional(listOf(object({ id: text(), why: text() }), "Conversations that the hub did not take.")),
    quarantined: optional(
      listOf(
        object({ id: text(), at: text(), rules: listOf(text()) }),
        "status: hidden on the hub from all others, since newer rules find what looks like a secret.",
      ),
    ),
    receipts: optional(
      listOf(
        object({
          at: text(),
          conversations: integer(),
          why: text("person, retention, admin or quarantine."),
          by: optional(text("Who deleted it. Without: the hub, by a rule.")),
          key_gone_at: optional(text("Since when the hub's files do not have its key either. Without: not yet.")),
        }),
        "status: what was deleted on the hub and was yours.",
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
        "tokens: yours, without their secrets.",
      ),
    ),
    requests: optional(
      listOf(
        object({ project: text(), member: text(), at: text() }),
        "requests: members who asked to share a project that you own.",
      ),
    ),
    requests_waiting: optional(integer("status: requests that wait for your answer.")),
    access: optional(
      object({
        member: text(),
        project: text(),
        level: optional(text("What the member has now. Without: the request was denied.")),
      }),
    ),
    members: optional(
      listOf(
        object({
          name: text(),
          level: text("read, write or own."),
          group_level: optional(text("What a group of the identity provider gives of it.")),
        }),
        "members: who was granted the project.",
      ),
    ),
    revoked: optional(integer("tokens revoke: the token that has ended.")),
    pushed_at: optional(text("When everything was sent last.")),
    next_try_at: optional(text("When dex tries again by itself.")),
    summary: optional(summaryShape),
    preview: optional(
      object({
        conversations: listOf(
          object({
            id: text(),
            title: text(),
            messages: integer(),
            chunks: integer(),
            bytes: integer("As they would be sent, compressed."),
            taken_out: takenOutShape,
            left_out: mapOf(integer(), "Parts and effects that stay here, by kind."),
            head: optional(text("The conversation without its messages, exactly as it is sent.")),
            lines: optional(text("Its messages, one JSON object a line: the bytes that are sent, before compression.")),
          }),
        ),
        bytes: integer(),
        taken_out: takenOutShape,
        truncated: optional(text("What is not shown, and how to see it.")),
      }),
    ),
    pushed: optional(
      object({
        busy: flag("Another dex is sending."),
        sent: integer("Conversations."),
        removed: integer("Conversations that were deleted on the hub."),
        refused: integer("Conversations."),
        bytes: integer(),
        complete: flag("Everything was sent."),
      }),
    ),
    unshared: optional(text("The project that is no longer shared.")),
    on_hub: optional(integer("Conversations of it that the hub has.")),
    logged_out: optional(flag()),
    asked: optional(flag("Nothing was done yet: confirm with yes.")),
  }),
  cli: {
    group: "Keep",
    positional: "words",
    short: { y: "yes" },
    example: "dex hub share --preview",
    forms: {
      "dex hub login ADDRESS": "Log in, in a browser or with a token",
      "dex hub share": "Share this project; asks first",
      "dex hub share --preview": "Show what would be sent",
      "dex hub hold 3": "Keep one conversation back",
      "dex hub requests": "List who asks to share your projects; approve NAME lets one in",
      "dex hub grant bob": "Give somebody this project",
      "dex hub members": "List who has this project",
      "dex hub tokens": "List your tokens; revoke ID ends one",
      "dex hub unshare --forget": "Stop, and delete what was sent",
    },
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
})
