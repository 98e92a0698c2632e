// Writes docs/events.md, the reference of all event types, from the code: `pnpm docs:events`.
import { writeFile } from 'node:fs/promises'
import { eventsPage } from './events/page.ts'

await writeFile(new URL('../docs/events.md', import.meta.url), eventsPage())
