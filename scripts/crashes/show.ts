/** Shows how far long work is, if a person looks at a terminal. */
export function showProgress(what: string, done: number, of: number): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001B[K${what}  ${done} of ${of}`)
}

/** Takes the line of progress away. */
function clearProgress(): void {
  if (process.stderr.isTTY) process.stderr.write('\r\u001B[K')
}

/** Tells of a place where a promise was broken, and how to go there again. */
export function showFailure(place: string, violations: readonly string[], again: string): void {
  clearProgress()
  console.log(`FAILED    ${place}`)
  for (const violation of violations) console.log(`          ${violation}`)
  console.log(`          again: pnpm crashes ${again}`)
}

/** Figures on one line, after what they are of. */
export function showFigures(of: string, figures: readonly (readonly [number | string, string])[]): void {
  clearProgress()
  const text = figures.map(([count, what]) => `${count.toLocaleString('en')} ${what}`).join(', ')
  console.log(`${of.padEnd(9)} ${text}`)
}
