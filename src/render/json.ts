/** JSON in which nothing can steer a terminal: what JSON itself does not escape is escaped here. */
export function toJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )
}
