import { copyOnClick } from "./copy.ts"
import { openHelp } from "./help.tsx"
import { onKeys } from "./keys.ts"
import { loadLate } from "./late.ts"
import { followChanges } from "./live.ts"
import { openPalette } from "./palette.tsx"
import { readParts } from "./parts.ts"
import { rowsAsTyped } from "./typed.ts"
import { findInConversation } from "./within.ts"

// Every page is whole without this: it moves, finds and keeps up.

copyOnClick()
readParts()
findInConversation()
rowsAsTyped()
followChanges()
void loadLate()
onKeys({ help: openHelp, palette: openPalette })
