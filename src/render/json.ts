/** JSON that cannot control a terminal: it also escapes characters that JSON itself does not escape. */
export function toJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )
}
