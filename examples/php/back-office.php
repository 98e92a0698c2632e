<?php

// php back-office.php start KEY | work RUN | approve RUN | follow RUN AFTER
declare(strict_types=1);

require __DIR__ . '/client/Worker.php';
require __DIR__ . '/client/shop.php';

$tallystick = new Tallystick(getenv('BACK_OFFICE_URL') ?: 'http://127.0.0.1:4870', getenv('BACK_OFFICE_TOKEN') ?: '');
[, $verb, $subject] = $argv + [null, '', ''];

if ($verb === 'start') {
    echo $tallystick->start('buyer', 'What is short? Order it.', $subject), "\n";
} elseif ($verb === 'work' || $verb === 'approve') {
    $worker = new Worker($tallystick, shopTools(getenv('SHOP') ?: sys_get_temp_dir()), fn (): bool => $verb === 'approve');
    $result = $worker->work($subject);
    foreach ($result['pendingApprovals'] as $call) {
        echo "waits: {$call['name']} ", json_encode($call['input']), "\n";
    }
    echo "{$result['status']}: {$result['text']}\n";
} elseif ($verb === 'follow') {
    $last = $tallystick->follow($subject, (int) ($argv[3] ?? 0), function (array $event): bool {
        echo match ($event['type']) {
            'assistant_text_delta' => $event['text'],
            'tool_started' => "{$event['seq']} {$event['name']} starts\n",
            'run_finished' => "\n{$event['seq']} {$event['reason']}\n",
            default => '',
        };
        return $event['type'] !== 'approval_requested'; // A page would show the question now and follow the run later.
    });
    echo "read up to $last\n";
} else {
    fwrite(STDERR, "php back-office.php start KEY | work RUN | approve RUN | follow RUN AFTER\n");
    exit(2);
}
