/** The words after `tallystick` for a shell. `LEDGER` is the ledger of the page, where its title is the name of a file. */
export function formatCommand(words: readonly string[], title: string | undefined): string {
  const ledger = title !== undefined && /\.(db|sqlite3?)$/.test(title) ? title : 'LEDGER'
  return ['tallystick', ...words.map((word) => (word === 'LEDGER' ? ledger : word))].map(quoteWord).join(' ')
}

function quoteWord(word: string): string {
  return /^[\w./:=@-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}
