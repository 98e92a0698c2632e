import type { CommandUnknownOpts, Option } from '@commander-js/extra-typings'
import type { CommandContext } from './command/context.ts'
import { withLedger } from './runs/open-ledger.ts'
import { runsVerb, type Shell } from './verbs.ts'

/** A script that makes a shell complete the verbs, options and files of a command line. */
export function createScript(program: CommandUnknownOpts, shell: Shell): string {
  const verbs = program.commands.filter((command) => command.name() !== runsVerb).map(toVerb)
  switch (shell) {
    case 'bash':
      return createBashScript(program.name(), verbs)
    case 'zsh':
      return createZshScript(program.name(), verbs)
    case 'fish':
      return createFishScript(program.name(), verbs)
  }
}

/** A value on the command line: one of some words, a file, a run of the ledger, or a value that cannot be completed. */
interface Place {
  readonly name: string
  readonly choices: readonly string[]
  readonly isFile: boolean
  readonly isRun: boolean
}

interface VerbOption {
  readonly flag: string
  readonly description: string
  /** Its value, where it takes one. */
  readonly value?: Place
}

interface Verb {
  readonly name: string
  readonly description: string
  readonly options: readonly VerbOption[]
  readonly places: readonly Place[]
}

function toVerb(command: CommandUnknownOpts): Verb {
  return {
    name: command.name(),
    description: command.summary() || command.description(),
    options: command.options.map(toOption),
    places: command.registeredArguments.map((argument) => toPlace(argument.name(), argument.argChoices)),
  }
}

function toOption({ long, short, description, flags, required, argChoices }: Option): VerbOption {
  const placeholder = /[<[]([\w-]+)/.exec(flags)?.[1] ?? ''
  const flag = long ?? short ?? ''
  return required ? { flag, description, value: toPlace(placeholder, argChoices) } : { flag, description }
}

function toPlace(name: string, choices: readonly string[] = []): Place {
  const isRun = choices.length === 0 && (name === 'run' || name === 'other')
  return { name, choices, isRun, isFile: ['ledger', 'file', 'keys'].includes(name) }
}

function createBashScript(program: string, verbs: readonly Verb[]): string {
  const values = verbs.flatMap(({ name, options }) =>
    options.flatMap(({ flag, value }) =>
      value ? [`    '${name} ${flag}') ${formatBashReply(program, value)} return ;;\n`] : [],
    ),
  )
  const places = verbs.flatMap(({ name, places }) =>
    places.map((place, index) => `    '${name} ${index + 1}') ${formatBashReply(program, place)} ;;\n`),
  )
  const flags = verbs.map(
    ({ name, options }) =>
      `      ${name}) ${formatBashWords(
        program,
        options.map(({ flag }) => flag),
      )} ;;\n`,
  )
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
    ${formatBashWords(
      program,
      verbs.map(({ name }) => name),
    )}
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
function formatBashReply(program: string, { choices, isFile, isRun }: Place): string {
  if (isFile) return `_${program}_reply < <(compgen -f -- "$cur");`
  if (isRun) return `_${program}_reply < <(_${program}_runs);`
  return choices.length === 0 ? '' : `${formatBashWords(program, choices)};`
}

function formatBashWords(program: string, words: readonly string[]): string {
  return `_${program}_reply <<< $'${words.join(String.raw`\n`)}'`
}

function createZshScript(program: string, verbs: readonly Verb[]): string {
  const described = verbs.map(
    ({ name, description }) => `    ${quote(`${name}:${escapeZsh(description)}`)}\n`,
  )
  const cases = verbs.map(({ name, options, places }) => {
    const specs = [
      ...options.map(({ flag, description, value }) =>
        quote(`${flag}[${escapeZsh(description)}]${value ? formatZshPlace(program, value) : ''}`),
      ),
      ...places.map((place, index) => quote(`${index + 1}${formatZshPlace(program, place)}`)),
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

function formatZshPlace(program: string, { name, choices, isFile, isRun }: Place): string {
  if (isFile) return `:${name}:_files`
  if (isRun) return `:${name}:_${program}_runs`
  return choices.length === 0 ? `:${name}: ` : `:${name}:(${choices.join(' ')})`
}

/** Brackets and colons mean something in a specification. */
function escapeZsh(text: string): string {
  return text.replaceAll(/[[\]:\\]/g, String.raw`\$&`)
}

function createFishScript(program: string, verbs: readonly Verb[]): string {
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
            `complete -c ${program} -n ${seen} -l ${flag.replace(/^--/, '')}${value ? formatFishValue(program, value) : ''} -d ${quote(what)}`,
        ),
        ...(places.some(({ isFile }) => isFile) ? [`complete -c ${program} -n ${seen} -F`] : []),
        ...(places.some(({ isRun }) => isRun)
          ? [`complete -c ${program} -n ${seen} -k -a '(__${program}_runs)'`]
          : []),
        ...places
          .filter(({ choices }) => choices.length > 0)
          .map(({ choices }) => `complete -c ${program} -n ${seen} -a ${quote(choices.join(' '))}`),
      ]
    }),
  ]
  return `${lines.join('\n')}\n`
}

function formatFishValue(program: string, { choices, isFile, isRun }: Place): string {
  if (isFile) return ' -r -F'
  if (isRun) return ` -x -a '(__${program}_runs)'`
  return choices.length === 0 ? ' -x' : ` -x -a ${quote(choices.join(' '))}`
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
