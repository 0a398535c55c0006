import { copyOnClick } from "./copy.ts"
import { openHelp } from "./help.tsx"
import { onKeys } from "./keys.ts"
import { loadLate } from "./late.ts"
import { followChanges } from "./live.ts"
import { openPalette } from "./palette.tsx"
import { readParts } from "./parts.ts"
import { searchWhileTyping } from "./typed.ts"
import { findInConversation } from "./within.ts"

// Every page works without this script, which adds keys, search while typing and live updates.

copyOnClick()
readParts()
findInConversation()
searchWhileTyping()
followChanges()
void loadLate()
onKeys({ help: openHelp, palette: openPalette })
