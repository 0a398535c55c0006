/** True if the picker can be shown here. `DEX_NO_PICKER=1` is for people who use a screen reader. */
export function hasPicker(output: { isTTY?: boolean }, env: Record<string, string | undefined>): boolean {
  return process.stdin.isTTY === true && output.isTTY === true && !env.DEX_NO_PICKER && env.TERM !== "dumb"
}
