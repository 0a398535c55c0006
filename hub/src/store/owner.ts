import { type Query, TYPES } from "./connection.ts"
import { openClient } from "./primary.ts"

/** Runs one transaction as the tables' owner, for the operator's commands. */
export async function asOwner<T>(owner: string, work: (query: Query) => Promise<T>): Promise<T> {
  const client = await openClient(owner, { types: TYPES, application_name: "dex-hub" })
  try {
    await client.query("begin")
    const result = await work(async (text, values) => (await client.query(text, values)).rows)
    await client.query("commit")
    return result
  } finally {
    await client.end()
  }
}
