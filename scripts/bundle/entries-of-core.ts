// Which entry of core another package takes a value from, where several have it.

/** The entries by what they load, the lightest first. */
const entries: Readonly<Record<string, () => Promise<Exports>>> = {
  '@tallystick/core/errors': () => import('../../packages/core/src/vocabulary/errors.ts'),
  '@tallystick/core/vocabulary': () => import('../../packages/core/src/vocabulary.ts'),
  '@tallystick/core/machine': () => import('../../packages/core/src/machine.ts'),
  '@tallystick/core/schemas': () => import('../../packages/core/src/schemas.ts'),
  '@tallystick/core/store-kit': () => import('../../packages/core/src/store-kit.ts'),
  '@tallystick/core/kit': () => import('../../packages/core/src/kit.ts'),
  '@tallystick/core': () => import('../../packages/core/src/index.ts'),
}

type Exports = Readonly<Record<string, unknown>>

/** By each of these entries: every name that it exports, with the lightest entry that exports the same value under it. */
export async function entriesOfCore(): Promise<Readonly<Record<string, ReadonlyMap<string, string>>>> {
  const loaded: (readonly [string, Exports])[] = []
  for (const [entry, load] of Object.entries(entries)) loaded.push([entry, await load()])
  return Object.fromEntries(
    loaded.map(([entry, own]) => [
      entry,
      new Map(
        Object.keys(own).map((name) => {
          const [lightest] = loaded.find(([, other]) => other[name] === own[name]) ?? [entry]
          return [name, lightest]
        }),
      ),
    ]),
  )
}
