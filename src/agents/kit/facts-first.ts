import { createHash } from "node:crypto"
import type { RawRecord } from "../../core/record.ts"
import { string } from "../../core/record.ts"
import type { Cursor, Reading, Unit } from "./connector.ts"

/** A transcript, and what its agent keeps about it elsewhere: a name, a parent, a folder. `facts` has a `type` of dex's own. */
export type UnitWithFacts = Unit & { facts?: RawRecord }

/** The unit is read again when the facts change, too. */
export function unitWithFacts(unit: Unit, facts: RawRecord | undefined): UnitWithFacts {
  return facts ? { ...unit, facts, stamp: `${unit.stamp}:${fingerprint(facts)}` } : unit
}

/** Puts the facts before the records, unless the cursor says that they were read already. */
export function factsFirst(reading: Reading, { facts }: UnitWithFacts, after?: Cursor): Reading {
  const known = reading.mode === "append" ? string(after?.facts) : undefined
  const now = facts ? fingerprint(facts) : known
  function* records(): Generator<RawRecord> {
    if (facts && now !== known) yield facts
    yield* reading.records
  }
  return {
    mode: reading.mode,
    records: records(),
    end: () => {
      const ended = reading.end()
      return now === undefined ? ended : { ...ended, cursor: { ...ended.cursor, facts: now } }
    },
  }
}

function fingerprint(facts: RawRecord): string {
  return createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 16)
}
