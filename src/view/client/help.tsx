import { openDialog } from "./dialog.tsx"

const KEYS: [keys: string, description: string][] = [
  ["j  k", "next and previous message or row"],
  ["n  p", "next and previous prompt"],
  ["c  C", "next and previous change to a file"],
  ["/", "find in this conversation, or search everything"],
  ["n  N", "next and previous match, while you find; Enter and ⇧Enter in the field"],
  ["e", "open or close all tool calls"],
  ["x", "save this conversation as one HTML file"],
  ["u", "back"],
  ["⌘K  ^K", "go anywhere"],
  ["?", "this list"],
]

export function openHelp(): void {
  openDialog("Keys", () => (
    <table class="keys">
      <tbody>
        {KEYS.map(([keys, description]) => (
          <tr key={keys}>
            <th scope="row">
              {keys.split("  ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </th>
            <td>{description}</td>
          </tr>
        ))}
      </tbody>
    </table>
  ))
}
