<?php

// php example/back-office.php start KEY | work RUN | approve RUN | follow RUN AFTER
declare(strict_types=1);

require __DIR__ . '/autoload.php';
require __DIR__ . '/shop.php';

use Tallystick\Client;
use Tallystick\Worker;

$client = Client::withGuzzle(getenv('BACK_OFFICE_URL') ?: 'http://127.0.0.1:4870', getenv('BACK_OFFICE_TOKEN') ?: '');
$worker = new Worker($client, shopTools(getenv('SHOP') ?: sys_get_temp_dir()));
[, $verb, $subject] = $argv + [null, '', ''];

if ($verb === 'start') {
    echo $client->start('buyer', 'What is short? Order it.', $subject), "\n";
} elseif ($verb === 'work' || $verb === 'approve') {
    $result = $worker->work($subject);
    if ($verb === 'approve') {
        foreach ($result->pendingApprovals as $call) {
            $client->approve($subject, $call);
        }
        $result = $worker->work($subject);
    }
    foreach ($result->pendingApprovals as $call) {
        echo "waits: $call->name ", json_encode($call->input), "\n";
    }
    echo "$result->status: $result->text\n";
} elseif ($verb === 'follow') {
    $last = (int) ($argv[3] ?? 0);
    foreach ($client->events($subject, $last) as $last => $event) {
        echo match ($event['type']) {
            'assistant_text_delta' => $event['text'],
            'tool_started' => "$last {$event['name']} starts\n",
            'run_finished' => "\n$last {$event['reason']}\n",
            default => '',
        };
        if ($event['type'] === 'approval_requested') {
            break; // A page would show the question now, and follow the run later.
        }
    }
    echo "read up to $last\n";
} else {
    fwrite(STDERR, "php example/back-office.php start KEY | work RUN | approve RUN | follow RUN AFTER\n");
    exit(2);
}
