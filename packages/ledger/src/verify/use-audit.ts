import type { AuditSource, StoredUses } from '../record/audit-source.ts'
import { fault, type Fault } from '../record/link-check.ts'
import type { StoredRow } from '../record/stored-row.ts'

/**
 * The first row for which the store keeps other contents, or another history, than its body refers to. A removal goes by
 * these uses: it would take away what a row without its use still refers to.
 */
export async function usesFault(
  source: AuditSource,
  rows: readonly StoredRow[],
): Promise<(Fault & { readonly seq: number }) | undefined> {
  const referring = rows.filter(({ referred }) => referred !== undefined)
  if (referring.length === 0) return undefined
  const found = await source.uses(referring.map(({ pos }) => pos))
  const usesAt = new Map(found.map((uses) => [uses.pos, uses]))
  for (const row of referring) {
    const uses = usesAt.get(row.pos)
    // A removal took the payload since it was read, and the uses with it.
    if (uses === undefined) continue
    const [due, kept] = [dueText(row), usesText(uses)]
    if (due !== kept) return { seq: row.seq, ...fault('uses of contents', due, kept) }
  }
  return undefined
}

function dueText({ referred }: StoredRow): string {
  const { references = [], history } = referred ?? {}
  const digests = references.map(({ digest }) => digest)
  return usesText({ digests, histories: history === undefined ? [] : [history] })
}

/** A content that a body holds twice has one use. */
function usesText({ digests, histories }: Pick<StoredUses, 'digests' | 'histories'>): string {
  const names = [...new Set(digests)].toSorted().concat(histories.map((name) => `history ${name}`))
  return names.length === 0 ? 'none' : names.join(', ')
}
