import { existsSync, statSync } from "node:fs"
import { join } from "node:path"
import type { Connector, Parsed, Unit } from "../../src/agents/kit/connector.ts"
import { recordsOf } from "../agents/contract.ts"

const SAMPLES = join(import.meta.dirname, "../../../shared/samples")

/**
 * The path of another project's sample on this machine. It is never copied into this repository; if it is missing, a message says
 * so.
 */
export function sampleAt(path: string): string | undefined {
  const sample = join(SAMPLES, path)
  if (existsSync(sample)) return sample
  console.log(`NOT RUN: the sample ${path} is not on this machine`)
  return undefined
}

/** The connector's output for one file. */
export async function parsedAt(connector: Connector, path: string, key: string): Promise<Parsed> {
  const unit: Unit = { key, path, stamp: "", bytes: statSync(path).size, modifiedAt: 0, bornAt: 0 }
  return connector.parse(await recordsOf(connector, unit), unit)
}
