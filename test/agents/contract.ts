import { test } from "vitest"
import type { Connector } from "../../src/agents/kit/connector.ts"
import type { Conversation } from "../../src/core/conversation.ts"
import { contractOf, readAll, unpackFixture } from "../../src/testing/contract.ts"
import { tempDir } from "../support/temp.ts"

export { readAll, recordsOf, unitsOf } from "../../src/testing/contract.ts"

export function testConnector(connector: Connector, fixtures: string): void {
  for (const { name, run } of contractOf(connector, fixtures)) test(name, run)
}

/** The temporary home into which a fixture is unpacked. */
export function homeOf(fixture: string): Promise<string> {
  return unpackFixture(fixture, tempDir())
}

/** All conversations of a home, by id, for tests of a single case. */
export async function conversationsOf(connector: Connector, home: string): Promise<Map<string, Conversation>> {
  const units = await readAll(connector, home)
  return new Map(units.flatMap((unit) => unit.conversations).map((conversation) => [conversation.id, conversation]))
}
