import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import type { CommandContext } from './command/context.ts'
import { withLedger } from './runs/open-ledger.ts'
import { runsVerb, type Shell } from './verbs.ts'

/**
 * Returns a script that makes a shell complete the verbs, options, files and runs of a command line.
 *
 * Own code: `@bomb.sh/tab` 0.0.22 starts the program at each Tab, completes no files, does not tell a completion which
 * ledger was typed before it, and its script for bash runs what is written in a completion.
 */
export function createScript(command: CommandUnknownOpts, shell: Shell): string {
  const verbs = command.commands
    .filter((verb) => verb.name() !== runsVerb)
    .map((verb) => ({
      name: verb.name(),
      description: verb.summary() || verb.description(),
      options: verb.options.map(({ long, short, description, flags, required, argChoices }) => {
        const [, placeholder = ''] = /[<[]([\w-]+)/.exec(flags) ?? []
        const value = required ? toValue(placeholder, argChoices) : undefined
        return { flag: long ?? short ?? '', description, value }
      }),
      places: verb.registeredArguments.map((argument) => toValue(argument.name(), argument.argChoices)),
    }))
  return { bash: createBashScript, zsh: createZshScript, fish: createFishScript }[shell](verbs)
}

const program = 'tallystick'

interface Verb {
  readonly name: string
  readonly description: string
  readonly options: readonly {
    readonly flag: string
    readonly description: string
    /** Absent if it takes none. */
    readonly value: Value | undefined
  }[]
  readonly places: readonly Value[]
}

/** A value on the command line, and the words that it can be: those listed, the files, the runs of the ledger, or any. */
interface Value {
  readonly name: string
  readonly words: readonly string[] | 'files' | 'runs'
}

function toValue(name: string, choices: readonly string[] = []): Value {
  if (['ledger', 'file', 'keys'].includes(name)) return { name, words: 'files' }
  const isRun = choices.length === 0 && (name === 'run' || name === 'other')
  return { name, words: isRun ? 'runs' : choices }
}

function createBashScript(verbs: readonly Verb[]): string {
  const values = verbs.flatMap(({ name, options }) =>
    options.flatMap(({ flag, value }) =>
      value ? [`    '${name} ${flag}') ${formatBashReply(value)} return ;;\n`] : [],
    ),
  )
  const places = verbs.flatMap(({ name, places }) =>
    places.map((place, index) => `    '${name} ${index + 1}') ${formatBashReply(place)} ;;\n`),
  )
  const flags = verbs.map(({ name, options }) => {
    const words = formatBashWords(options.map(({ flag }) => flag))
    return `      ${name}) ${words} ;;\n`
  })
  const withValue = verbs.flatMap(({ options }) =>
    options.flatMap(({ flag, value }) => (value ? [flag] : [])),
  )
  return `# ${program}: completion for bash
_${program}_runs() {
  local word
  for word in "\${COMP_WORDS[@]:2}"; do
    [[ -f $word ]] && ${program} ${runsVerb} "$word" 2>/dev/null && return
  done
}
# One word a line, taken literally: compgen -W would run what is written in them.
_${program}_reply() {
  local word
  while IFS= read -r word; do
    [[ $word == "$cur"* ]] && COMPREPLY+=("$word")
  done
}
_${program}() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} verb=\${COMP_WORDS[1]} place=1 at IFS=$'\\n'
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    ${formatBashWords(verbs.map(({ name }) => name))}
    return
  fi
  case "$verb $prev" in
${values.join('')}  esac
  if [[ $cur == -* ]]; then
    case $verb in
${flags.join('')}    esac
    return
  fi
  for ((at = 2; at < COMP_CWORD; at++)); do
    case \${COMP_WORDS[at]} in
      ${[...new Set(withValue)].join('|')}) ((at++)) ;;
      -*) ;;
      *) ((place++)) ;;
    esac
  done
  case "$verb $place" in
${places.join('')}  esac
}
complete -o filenames -F _${program} ${program}
`
}

/** Words come a line each, since names of files have spaces. */
function formatBashReply({ words }: Value): string {
  if (words === 'files') return `_${program}_reply < <(compgen -f -- "$cur");`
  if (words === 'runs') return `_${program}_reply < <(_${program}_runs);`
  return words.length === 0 ? '' : `${formatBashWords(words)};`
}

function formatBashWords(words: readonly string[]): string {
  return `_${program}_reply <<< $'${words.join(String.raw`\n`)}'`
}

function createZshScript(verbs: readonly Verb[]): string {
  const described = verbs.map(
    ({ name, description }) => `    ${quote(`${name}:${escapeZsh(description)}`)}\n`,
  )
  const cases = verbs.map(({ name, options, places }) => {
    const specs = [
      ...options.map(({ flag, description, value }) =>
        quote(`${flag}[${escapeZsh(description)}]${value ? formatZshValue(value) : ''}`),
      ),
      ...places.map((place, index) => quote(`${index + 1}${formatZshValue(place)}`)),
    ]
    return `    ${name}) _arguments ${specs.join(' ')} ;;\n`
  })
  return `#compdef ${program}
_${program}_runs() {
  local word
  for word in $words[2,-1]; do
    [[ -f \${(Q)word} ]] || continue
    compadd -V runs -- \${(f)"$(${program} ${runsVerb} \${(Q)word} 2>/dev/null)"}
    return
  done
}
_${program}() {
  local -a verbs
  verbs=(
${described.join('')}  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  (( CURRENT-- ))
  case $verb in
${cases.join('')}  esac
}
compdef _${program} ${program}
`
}

function formatZshValue({ name, words }: Value): string {
  if (words === 'files') return `:${name}:_files`
  if (words === 'runs') return `:${name}:_${program}_runs`
  return words.length === 0 ? `:${name}: ` : `:${name}:(${words.join(' ')})`
}

/** Brackets and colons mean something in a specification. */
function escapeZsh(text: string): string {
  return text.replaceAll(/[[\]:\\]/g, String.raw`\$&`)
}

function createFishScript(verbs: readonly Verb[]): string {
  const lines = [
    `# ${program}: completion for fish`,
    `function __${program}_runs`,
    '  for word in (commandline -opc)[3..]',
    `    test -f "$word"; and ${program} ${runsVerb} "$word" 2>/dev/null; and return`,
    '  end',
    'end',
    `complete -c ${program} -f`,
    ...verbs.flatMap(({ name, description, options, places }) => {
      const seen = quote(`__fish_seen_subcommand_from ${name}`)
      return [
        `complete -c ${program} -n __fish_use_subcommand -a ${name} -d ${quote(description)}`,
        ...options.map(
          ({ flag, description: what, value }) =>
            `complete -c ${program} -n ${seen} -l ${flag.replace(/^--/, '')}${value ? formatFishValue(value) : ''} -d ${quote(what)}`,
        ),
        ...(places.some(({ words }) => words === 'files') ? [`complete -c ${program} -n ${seen} -F`] : []),
        ...(places.some(({ words }) => words === 'runs')
          ? [`complete -c ${program} -n ${seen} -k -a '(__${program}_runs)'`]
          : []),
        ...places.flatMap(({ words }) =>
          typeof words === 'string' || words.length === 0
            ? []
            : [`complete -c ${program} -n ${seen} -a ${quote(words.join(' '))}`],
        ),
      ]
    }),
  ]
  return `${lines.join('\n')}\n`
}

function formatFishValue({ words }: Value): string {
  if (words === 'files') return ' -r -F'
  if (words === 'runs') return ` -x -a '(__${program}_runs)'`
  return words.length === 0 ? ' -x' : ` -x -a ${quote(words.join(' '))}`
}

/** A word that no shell looks into; zsh and fish take the same. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** More than a person reads through. */
const maxRuns = 50

/** Prints what completes the argument RUN, one word a line: `latest`, and the newest runs. Reads no event of them. */
export function completeRuns({ print }: CommandContext, ledgerPath: string): Promise<void> {
  return withLedger(ledgerPath, 'read', async (ledger) => {
    await print('latest\n')
    for await (const { runId } of ledger.runs({ limit: maxRuns })) await print(`${runId}\n`)
  })
}
