/**
 * How what is derived is kept. Each way has its own file: versions of dex that run side by side leave each other's alone.
 * Another schema, another number; a test knows which schema belongs to which.
 */
export const INDEX_FORMAT = 5
export const KNOWLEDGE_FORMAT = 2

export const INDEX_FILE = `index-${INDEX_FORMAT}.db`
export const KNOWLEDGE_FILE = `knowledge-${KNOWLEDGE_FORMAT}.db`
