/** The error with which opening a file is refused; throws where it is not. */
export function refusalOf(open: () => unknown): Error {
  try {
    open()
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('It was opened.')
}
