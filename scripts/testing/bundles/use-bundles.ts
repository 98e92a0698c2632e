// Lets programs that a test starts load core, ledger and replay from few files. The process of the tests loads the sources.
const options = process.env['TALLYSTICK_PROGRAM_OPTIONS']
if (options !== undefined) process.env['NODE_OPTIONS'] = options
