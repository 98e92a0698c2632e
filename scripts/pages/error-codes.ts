// The stable codes of errors, as the sources of the packages declare them.

/** Returns every `code` that an error of these sources can have, sorted. `unexpected` is what the command says of others. */
export function errorCodes(sources: readonly string[]): readonly string[] {
  const codes = sources
    .filter((source) => source.includes('extends TallystickError'))
    .flatMap((source) =>
      [...source.matchAll(/\bsuper\(\s*(?:options\?\.code \?\? )?'([a-z_]+)'/g)].map(([, code = '']) => code),
    )
  return [...new Set([...codes, ...readWords('CommandErrorKind', sources), 'unexpected'])].toSorted()
}

/** Returns every code that a server gives a problem of its own, sorted. */
export function problemCodes(sources: readonly string[]): readonly string[] {
  const refused = /\b(?:RefusedRequestError|toOpenAiError)\(\s*\d+,\s*'([a-z_]+)'/g
  const codes = sources.flatMap((source) => [...source.matchAll(refused)].map(([, code = '']) => code))
  return [...new Set(codes)].toSorted()
}

/** Returns the kinds of a `LedgerConflictError`. */
export function conflictKinds(sources: readonly string[]): readonly string[] {
  return readWords('ConflictKind', sources)
}

function readWords(type: string, sources: readonly string[]): readonly string[] {
  const declared = new RegExp(`export type ${type} = ([^\\n]+)`)
  const found = sources.flatMap((source) => declared.exec(source)?.[1] ?? [])
  return found.flatMap((words) => [...words.matchAll(/'(\w+)'/g)].map(([, word = '']) => word))
}
