const MOST_NAMED = 3

/** What is said beside an answer when something that it read is not what was once written. */
export function damageNote(names: readonly string[]): string {
  const named = names.slice(0, MOST_NAMED).join(", ")
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : ""
  return `history.db is damaged in places: ${named}${more}. What could not be read was left out. \`dex sync\` restores what it can; \`dex doctor\` shows the details.`
}
