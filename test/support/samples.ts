import { existsSync, statSync } from "node:fs"
import { join } from "node:path"
import type { Connector, Parsed, Unit } from "../../src/agents/kit/connector.ts"
import { recordsOf } from "../agents/contract.ts"

const SAMPLES = join(import.meta.dirname, "../../../shared/samples")

/** Where another project's sample is on this machine. It is never copied into this repository; where it is absent, that is said. */
export function sampleAt(path: string): string | undefined {
  const sample = join(SAMPLES, path)
  if (existsSync(sample)) return sample
  console.log(`NOT RUN: the sample ${path} is not on this machine`)
  return undefined
}

/** What a connector says of one file where it is. */
export async function parsedAt(connector: Connector, path: string, key: string): Promise<Parsed> {
  const unit: Unit = { key, path, stamp: "", bytes: statSync(path).size, modifiedAt: 0, bornAt: 0 }
  return connector.parse(await recordsOf(connector, unit), unit)
}
