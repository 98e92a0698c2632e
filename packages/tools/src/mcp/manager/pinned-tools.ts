import type { ListedTool } from '../listing/listed-tool.ts'

/** What is known of each tool: the digest under which a person, or the first list of its server, has accepted it. */
export interface PinnedTools {
  /** Accepts what is listed for the first time. */
  see(tool: ListedTool): void
  /** Whether a tool is another one than was accepted. */
  hasChanged(tool: ListedTool): boolean
  /** A person has approved a call of the tool as it is now. */
  accept(tool: ListedTool): void
  /** The digests by the names of the tools. */
  all(): Readonly<Record<string, string>>
}

/** Begins with the digests that a person knows. */
export function pinnedTools(known: Readonly<Record<string, string>>): PinnedTools {
  const digests = new Map(Object.entries(known))
  return {
    see(tool) {
      if (!digests.has(tool.exposedName)) digests.set(tool.exposedName, tool.digest)
    },
    hasChanged: (tool) => (digests.get(tool.exposedName) ?? tool.digest) !== tool.digest,
    accept: (tool) => void digests.set(tool.exposedName, tool.digest),
    all: () => Object.fromEntries([...digests].toSorted(([one], [other]) => (one < other ? -1 : 1))),
  }
}
