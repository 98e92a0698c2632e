// Writes docs/endings.md, the page of all ways in which a run can end or wait, from the code: `pnpm docs:endings`.
import { writeFile } from 'node:fs/promises'
import { endingsPage } from './endings/page.ts'

await writeFile(new URL('../docs/endings.md', import.meta.url), await endingsPage())
