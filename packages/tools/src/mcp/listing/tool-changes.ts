import type { Listing } from './listed-tool.ts'

/** What a server's new list of tools changes, by the names that models know. */
export interface ToolChanges {
  readonly server: string
  readonly added: readonly string[]
  readonly removed: readonly string[]
  /** Their description or input schema is another one. */
  readonly changed: readonly string[]
}

/** The difference between two lists of one server; `undefined` where they are equal. */
export function toolChanges(server: string, before: Listing, after: Listing): ToolChanges | undefined {
  const names = (listing: Listing, other: Listing): readonly string[] =>
    [...listing.tools.values()].flatMap((tool) => (other.tools.has(tool.name) ? [] : [tool.exposedName]))
  const changed = [...after.tools.values()].flatMap((tool) => {
    const old = before.tools.get(tool.name)
    return old !== undefined && old.digest !== tool.digest ? [tool.exposedName] : []
  })
  const changes = { server, added: names(after, before), removed: names(before, after), changed }
  return changes.added.length + changes.removed.length + changed.length > 0 ? changes : undefined
}
