import { signal } from '@preact/signals'
import { readEmbedded } from '../data/embedded.ts'
import { ServerSource } from '../data/server-source.ts'
import type { Source } from '../data/source.ts'

/** Where runs come from: the export in this page, else the server that it came from. A dropped file replaces it. */
export const source = signal<Source>(readEmbedded() ?? new ServerSource())
