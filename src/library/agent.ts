// Everything that a program needs to define a connector: the types, and the readers that dex's own connectors use.

export type {
  Connector,
  Cursor,
  Machine,
  OutsideAgent,
  Parsed,
  Reading,
  Unit,
  UnitName,
  Unreadable,
} from "../agents/kit/connector.ts"
export { entriesOf, fileAt, unitOfFile } from "../agents/kit/files.ts"
export { readJsonl } from "../agents/kit/jsonl.ts"
export type { Conversation, Message, Part } from "../core/conversation.ts"
export { type RawRecord, record, records, string } from "../core/record.ts"
