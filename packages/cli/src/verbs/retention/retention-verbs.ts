import type { ListedVerb } from '../../command/declare-verb.ts'

/** What takes content away, on record. */
export const retentionVerbs: readonly ListedVerb[] = [
  { name: 'redact', summary: 'take away what events said', load: () => import('./redact.ts') },
  { name: 'retain', summary: 'take away what is older than given', load: () => import('./retain.ts') },
  { name: 'erase', summary: 'destroy the keys of a subject', load: () => import('./erase.ts') },
]
