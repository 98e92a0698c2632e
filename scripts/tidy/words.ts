import { type Finding, isRecording, lineAt, type SourceFile } from './finding.ts'

interface BannedWord {
  readonly pattern: RegExp
  readonly why: string
  /** Recordings are kept as they were, save what would give a machine away. */
  readonly alsoInRecordings: boolean
}

// The patterns are written so that none of them matches itself.
const banned: readonly BannedWord[] = [
  {
    pattern: /(?<![\w.:/@}-])\/(?:home|root|tmp|work|Users)\/[\w.-]+/g,
    why: 'is a path of one machine. Make it relative, or ask os.tmpdir().',
    alsoInRecordings: true,
  },
  {
    pattern: /\b(?:registry\.[\w-]+\.\w+|(?:artifactory|verdaccio|nexus)\.[\w-]+\.\w+|_auth[T]oken)\b/g,
    why: "is a registry's address or credential. Where packages come from is the machine's own setting.",
    alsoInRecordings: true,
  },
  {
    pattern: /\b(?:TO[D]O|FIX[M]E|XX[X])\b/g,
    why: 'is a promise to nobody. Do it, or open an issue.',
    alsoInRecordings: false,
  },
]

/** Words that no committed file holds: paths of machines, registries, and work left for later. */
export function words(file: SourceFile): readonly Finding[] {
  return banned.flatMap(({ pattern, why, alsoInRecordings }) =>
    isRecording(file.path) && !alsoInRecordings
      ? []
      : [...file.text.matchAll(pattern)].map((match): Finding => {
          const line = lineAt(file.text, match.index)
          return { rule: 'words', level: 'error', path: file.path, line, message: `"${match[0]}" ${why}` }
        }),
  )
}
