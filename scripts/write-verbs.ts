// Writes packages/cli/src/verb-list.ts, the list of the command's verbs, from their files: `pnpm verbs`.
import { writeFile } from 'node:fs/promises'
import { verbList } from './verbs/list.ts'

await writeFile(new URL('../packages/cli/src/verb-list.ts', import.meta.url), await verbList())
