/** The variables of a file of lines `NAME=value`, as editors read it. Lines of another form are left out. */
export function envFileValues(text: string): Readonly<Record<string, string>> {
  const entries = text.split(/\r?\n/).flatMap((line) => {
    const at = line.indexOf('=')
    const name = line
      .slice(0, Math.max(at, 0))
      .replace(/^\s*export\s/, '')
      .trim()
    return /^[A-Za-z_]\w*$/.test(name) ? [[name, plainValue(line.slice(at + 1).trim())] as const] : []
  })
  return Object.fromEntries(entries)
}

function plainValue(value: string): string {
  const [quote] = value
  const isQuoted = (quote === '"' || quote === "'") && value.length > 1 && value.endsWith(quote)
  return isQuoted ? value.slice(1, -1) : value
}
