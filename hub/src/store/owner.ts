import pg from "pg"
import { ignoreBrokenConnection, type Query, TYPES } from "./connection.ts"

/** Runs one transaction as the tables' owner, for the operator's commands. */
export async function asOwner<T>(owner: string, work: (query: Query) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: owner, types: TYPES, application_name: "dex-hub" })
  ignoreBrokenConnection(client)
  await client.connect()
  try {
    await client.query("begin")
    const result = await work(async (text, values) => (await client.query(text, values)).rows)
    await client.query("commit")
    return result
  } finally {
    await client.end()
  }
}
