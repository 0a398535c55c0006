import type { Connector } from "./kit/connector.ts"

/** The record of an agent that a user brings: what a module exports as `agent`. */
export type OutsideAgent = {
  /** How its refs begin: small letters, digits and _. It is stored: never change it. */
  source: string
  /** As people call it. */
  name: string
  /** Reads its sessions. */
  connector: () => Promise<Connector>
  /** The command that takes up an old conversation, by its id or by the file that it is kept in. */
  resume?: (id: string, path: string) => string[]
}
