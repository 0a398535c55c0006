import { formatRef, type Ref } from "../core/ref.ts"

const MOST_NAMED = 3

/** What is said beside an answer from which something was left out because its bytes are not what was written. */
export function damageNote(refs: readonly Ref[]): string {
  const names = refs.slice(0, MOST_NAMED).map(formatRef).join(", ")
  const which =
    refs.length === 1
      ? `One conversation is damaged in history.db: ${names}`
      : `${refs.length} conversations are damaged in history.db: ${names}${refs.length > MOST_NAMED ? ", …" : ""}`
  return `${which}. What could not be read was left out. \`dex sync\` restores what it can; \`dex doctor\` shows the details.`
}
