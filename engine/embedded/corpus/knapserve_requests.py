"""More facts about KnapServe: what a request may ask for, and what is measured. See `knapserve_facts`."""

from __future__ import annotations

from engine.embedded.corpus.knapserve_facts import Fact
from engine.embedded.corpus.manner import items, pool

REQUESTS = (
    Fact(
        "speculation off",
        'Start the server with knapserve serve --draft-policy none, or send "draft_policy": "none" with a request.',
        pool(
            """Can speculation be turned off? / Which flag turns speculation off? / Can drafting be switched off? /
            Which policy turns drafting off? / Is there a way without speculation? / What does policy none do? /
            How is speculation turned off? / Can KnapServe decode plainly only? / What turns off speculation? /
            Turn off speculation. / Which flag turns off drafting? / Turn speculation off. /
            What does the policy none do? / Disable speculation. / Which option turns speculation off? /
            Is drafting optional?"""
        ),
        terms=items("the policy none / policy none / draft policy none / --draft-policy none"),
        deeds=items(
            """turn speculation off / turn off speculation / disable speculation / switch off drafting /
            turn drafting off / decode without drafting / use plain decoding / disable drafting / stop speculation /
            switch speculation off / get plain decoding / turn off drafting / turn off speculative decoding"""
        ),
    ),
    Fact(
        "policies",
        "The draft policies are none, fixed, layerskip and knapspec. The default is knapspec.",
        pool(
            """Which policies are there? / What draft policies exist? / List the draft policies. /
            Which draft policies are there? / What is the default policy? / Which draft policy is the default? /
            What policies does KnapServe have? / Which draft policies does KnapServe know? / Name the draft policies. /
            Which policies exist? / What policies are there? / Which policy is used? / List the policies. /
            What is the default draft policy? / Which drafting methods are there? / Tell me the draft policies. /
            Which policy is the default? / Policies?"""
        ),
        terms=items("a draft policy / a policy / the draft policy"),
        deeds=items("see the draft policies / list the policies / list all draft policies"),
    ),
    Fact(
        "choose policy",
        'Start the server with --draft-policy POLICY, or send "draft_policy" with a request.',
        pool(
            """Which flag sets the draft policy? / Can a request choose its policy? / Where do I set the policy? /
            How is the draft policy set? / What does --draft-policy do? / What does draft_policy do? /
            Can each request have its own policy? / Which field sets the policy of a request? /
            Which option sets the policy? / Can a request name another policy? / How is the policy set? /
            Where do I set the draft policy? / How is the policy chosen? / Which flag chooses the policy? /
            Can I send the policy with a request?"""
        ),
        terms=items("--draft-policy / draft_policy / the flag --draft-policy"),
        deeds=items(
            """set the draft policy / change the policy / choose the draft policy / choose a policy /
            use another draft policy / use another policy / set the policy of a request / change the draft policy /
            use the policy fixed / use the policy layerskip / switch the policy"""
        ),
    ),
    Fact(
        "knapspec",
        "The policy knapspec chooses by a knapsack, for every request and as its context grows, which sublayers draft. "
        "It is the default.",
        pool(
            """How does knapspec work? / What does knapspec do? / What does the policy knapspec do? /
            How does the policy knapspec work? / What is special about knapspec? / Explain how knapspec works. /
            How does KnapSpec choose? / What is the idea of knapspec? / Describe the policy knapspec. /
            How does the default policy work? / Describe knapspec. / What does KnapSpec choose? /
            How does the method KnapSpec work? / What does the default policy do? / Why is knapspec the default?"""
        ),
        terms=items("knapspec / KnapSpec / the policy knapspec / policy knapspec / Knapspec"),
    ),
    Fact(
        "layerskip",
        "The policy layerskip drafts with the first layers only: an early exit. Its plan never changes.",
        pool(
            """How does layerskip work? / What does layerskip do? / What does the policy layerskip do? /
            How does the policy layerskip work? / Which layers does layerskip use? / Explain how layerskip works. /
            How does layerskip draft? / What is the idea of layerskip? / Describe the policy layerskip. /
            Which layers draft with layerskip? / Describe layerskip. / Does the plan of layerskip change? /
            What layers does layerskip run? / What is special about layerskip?"""
        ),
        terms=items("layerskip / the policy layerskip / policy layerskip / early exit / an early exit / LayerSkip"),
    ),
    Fact(
        "fixed",
        "The policy fixed always skips the same part of the sublayers while drafting, half of them by default.",
        pool(
            """How does the policy fixed work? / What does fixed do? / What does the policy fixed do? /
            What does the policy fixed skip? / Which layers does fixed skip? / Explain how the policy fixed works. /
            How does fixed draft? / What is the idea of the policy fixed? / Describe the policy fixed. /
            Which sublayers does the policy fixed skip? / How does fixed work? / How many layers does fixed skip? /
            What does draft policy fixed do? / What is special about the policy fixed?"""
        ),
        terms=items("the policy fixed / policy fixed / draft policy fixed / the fixed policy"),
    ),
    Fact(
        "streaming",
        'Send "stream": true with the request, and the answer comes piece by piece as server-sent events.',
        pool(
            """Does KnapServe stream? / Is streaming supported? / Can answers be streamed? /
            Do you support streaming? / Does KnapServe support streaming? / Can you stream? /
            Can I get the answer token by token? / Does streaming work? / Does the server stream tokens? /
            What does stream true do? / Can tokens be streamed? / How does streaming work? / Can KnapServe stream? /
            Which field turns streaming on?"""
        ),
        terms=items("streaming / stream / the stream field"),
        deeds=items(
            """stream the answer / get a stream / stream tokens / turn streaming on / use streaming / stream answers /
            get the answer piece by piece / receive tokens as they come / turn on streaming / get tokens one by one"""
        ),
    ),
    Fact(
        "sampling",
        "Send temperature, top_p or top_k with the request. Temperature 0 always takes the likeliest token.",
        pool(
            """Is temperature supported? / Does KnapServe support temperature? / What does temperature 0 do? /
            Does KnapServe support top_p? / Can I use temperature? / Which sampling parameters are supported? /
            Does KnapServe support sampling? / Is top_p supported? / Is top_k supported? / Does temperature work? /
            Does KnapServe support top_k? / Which sampling settings are there? / Does sampling work? /
            What does the temperature do? / Is sampling supported? / What sampling parameters does KnapServe know?"""
        ),
        terms=items("temperature / temperature 0 / top_p / top_k / the temperature"),
        deeds=items(
            """set the temperature / change the temperature / use temperature 0 / set top_p / use greedy decoding /
            set top_k / get less random answers / lower the temperature / get more random answers / use sampling"""
        ),
    ),
    Fact(
        "seed",
        "Send a seed with the request. The same prompt, parameters and seed give the same text, whatever the draft "
        "policy and the load.",
        pool(
            """Is a seed supported? / Does KnapServe support seeds? / Are answers reproducible? /
            What does the seed do? / Can I set a seed? / Is the output reproducible? / Does a seed work? /
            Does KnapServe support a seed? / What does seed do? / Does the same seed give the same text? /
            Are the answers reproducible with a seed? / Is the text the same with the same seed? /
            Can I get the same answer again? / Is KnapServe deterministic? / Is sampling reproducible? /
            Is the server deterministic?"""
        ),
        terms=items("a seed / the seed / seed"),
        deeds=items(
            """set a seed / use a seed / get the same answer again / get reproducible answers / set the seed /
            make answers reproducible / get the same text twice / reproduce an answer / send a seed"""
        ),
    ),
    Fact(
        "max tokens",
        'Send "max_tokens" with the request, for example "max_tokens": 100.',
        pool(
            """Does KnapServe support max_tokens? / Which field limits the length of the answer? /
            What does max_tokens do? / Which parameter sets the length of an answer? /
            How is the length of an answer limited? / Which parameter limits the answer? / Is max_tokens supported? /
            Can the answer be shorter? / Can I limit the number of tokens? / Which field sets the most tokens? /
            Can the answer be limited? / Can answers be limited? / Where do I set the length of the answer?"""
        ),
        terms=items("max_tokens / the max_tokens field"),
        deeds=items(
            """limit the length of the answer / limit the answer / get a shorter answer / set max_tokens /
            limit the number of tokens / limit the output tokens / get shorter answers / use max_tokens"""
        ),
    ),
    Fact(
        "unsupported",
        "A parameter that would change the output and is not supported yet is refused by name, never ignored.",
        pool(
            """What happens to parameters that are not supported? / Are unknown parameters ignored? /
            What happens with unsupported parameters? / Are unsupported parameters ignored? /
            Why was my parameter refused? / Are parameters ignored? / What if a parameter is not supported? /
            Does KnapServe ignore parameters? / Why is my parameter refused? /
            What happens if I send a parameter that is not supported? /
            Are parameters that are not supported refused? / Does the server ignore unsupported parameters? /
            What does KnapServe do with unsupported parameters? / Why was a parameter of my request refused? /
            Does KnapServe refuse parameters?"""
        ),
        terms=items("an unsupported parameter / a refused parameter"),
    ),
)

MEASURING = (
    Fact(
        "metrics",
        "The metrics are at /metrics, in Prometheus' text format.",
        pool(
            """Where are the metrics? / Is there a metrics endpoint? / Does KnapServe have metrics? /
            Which endpoint has the metrics? / Where can I see the metrics? / Does KnapServe support Prometheus? /
            Does it work with Prometheus? / Which path has the metrics? / What format do the metrics have? /
            Are there metrics? / Where is the metrics endpoint? / Does KnapServe export metrics? /
            What is the path of the metrics? / Can Prometheus read the metrics? / Metrics?"""
        ),
        terms=items("/metrics / the metrics endpoint / the endpoint /metrics"),
        deeds=items("see the metrics / get the metrics / use Prometheus / read the metrics / connect Prometheus"),
    ),
    Fact(
        "health",
        "GET /health answers 200 while requests can be served, else 503.",
        pool(
            """Is there a health endpoint? / Where is the health check? / Which endpoint shows the health? /
            Which path is the health check? / Does KnapServe have a health check? / Where is the health endpoint? /
            Is there a health check? / Does the server have a health endpoint? / What does /health do? /
            What does the health endpoint answer? / What does /health answer? / Which endpoint is for health checks? /
            When does /health answer 503? / What does /health say? / What is the path of the health check?"""
        ),
        terms=items("/health / the health endpoint / the health check / the endpoint /health"),
        deeds=items(
            """check the health / check the health of the server / see whether the server is ready /
            add a health check / see if the server is healthy / know whether KnapServe is ready /
            check whether KnapServe is ready"""
        ),
    ),
    Fact(
        "reply metrics",
        "Every reply carries it in metrics.speculative_decoding: tokens per second, acceptance, what was skipped and "
        "more.",
        pool(
            """How fast was this answer? / Where do I see the speed of an answer? /
            How many tokens per second do I get? / Where can I see the acceptance? /
            How many tokens per second was that? / How fast are you? / Where do I see the tokens per second? /
            How fast was the answer? / How fast is KnapServe? / Where can I see how fast an answer was? /
            How fast was that? / Where do I see how many tokens were drafted? /
            Where do I see the acceptance of an answer? / Does the reply tell how fast it was? /
            How many drafts were accepted in this answer? / How many layers were skipped?"""
        ),
        deeds=items(
            """see the speed of an answer / see how fast an answer was / see the acceptance / see tokens per second /
            see the tokens per second / see what was skipped / see how many tokens were drafted"""
        ),
    ),
    Fact(
        "bench",
        "knapserve bench decode compares the draft policies on the same prompts. knapserve bench serve measures a "
        "running server.",
        pool(
            """Is there a benchmark? / Which bench commands are there? / Does KnapServe have a benchmark? /
            Which command measures the speed? / How is the speed-up measured? / What benchmarks are there? /
            Which command compares the policies? / Which command runs a benchmark? / Is there a speed test? /
            Can KnapServe measure the speed? / Which benchmarks does KnapServe have? / Is there a bench command? /
            Which command measures the speed-up? / What does the bench command do?"""
        ),
        terms=items("knapserve bench / bench decode / bench serve / knapserve bench decode / knapserve bench serve"),
        deeds=items(
            """measure the speed / run a benchmark / benchmark KnapServe / compare the policies /
            measure the speed-up / compare the draft policies / measure a running server /
            see whether speculation pays / test the speed / run the benchmark / compare with plain decoding /
            benchmark the server"""
        ),
    ),
    Fact(
        "profile",
        "A profile holds the latencies measured on this machine for this model. KnapServe uses it to price every plan.",
        pool(
            """What is in a profile? / What are profiles for? / What does a profile contain? /
            What is a latency profile good for? / Why is a profile needed? / Why does KnapServe need a profile? /
            What is a profile good for? / What does a profile hold? / What is a profile used for? /
            What are profiles? / What are latency profiles? / What does KnapServe use a profile for? /
            Why are there profiles? / What is a latency profile used for?"""
        ),
        terms=items("a profile / a latency profile / the latency profile / the profile"),
    ),
    Fact(
        "profile place",
        "Measured profiles are saved in ~/.local/share/knapserve/profiles, or where --profile-dir says.",
        pool(
            """Where are profiles saved? / Where is the profile stored? / Where are the profiles? /
            In which directory are the profiles saved? / Where does KnapServe save profiles? /
            In which folder are profiles kept? / Where is my profile? / Where does KnapServe keep its profiles? /
            Where do I find the profiles? / Where is the profile saved? / Where are profiles stored? /
            Which folder holds the profiles? / Which flag sets the profile directory? /
            Where are measured profiles kept? / What does --profile-dir do? / Where is the latency profile saved?"""
        ),
        terms=items("--profile-dir / the profile directory / the flag --profile-dir"),
        deeds=items(
            "find the profiles / change the profile directory / set the profile directory / delete a profile / "
            "save profiles in another folder"
        ),
    ),
    Fact(
        "profile time",
        "When no profile matches this machine and model, KnapServe measures for a few seconds at the start and saves "
        "the profile for later starts.",
        pool(
            """When is a profile measured? / Why does KnapServe measure at the start? / Why is the first start slow? /
            What happens at the first start? / When are profiles measured? / How is a profile made? /
            What if there is no profile? / How long does the measuring take? / When does KnapServe measure a profile? /
            What happens when no profile matches? / How is a profile measured? /
            Why does the first start take longer? / What happens without a profile? /
            What does KnapServe measure at the start? / How long does it measure? / Why is KnapServe measuring? /
            What happens when there is no profile?"""
        ),
        deeds=items("measure a profile / make a new profile / measure my machine / get a profile for my machine"),
    ),
    Fact(
        "tests",
        "In KnapServe's folder, make test installs what the tests need and runs them.",
        pool(
            """Are there tests? / Which command runs the tests? / Does KnapServe have tests? /
            Which command tests KnapServe? / Where are the tests? / What does make test do? / Is KnapServe tested? /
            How are tests run? / What command runs the tests? / Is there a test suite? / How is KnapServe tested? /
            How are the tests run? / Does the project have tests?"""
        ),
        terms=items("make test"),
        deeds=items("run the tests / test KnapServe / start the tests / run KnapServe's tests / run the test suite"),
    ),
    Fact(
        "licence",
        "I do not know: KnapServe's README names no licence. Please ask whoever gave it to you.",
        pool(
            """What licence does KnapServe have? / Which license is it? / What is the licence? / Is KnapServe free? /
            What is the license of KnapServe? / Is KnapServe open source? / Under which licence is KnapServe? /
            Which licence has KnapServe? / What license does KnapServe have? / Is this free software? /
            Is KnapServe free software? / Which licence does KnapServe use? / What does KnapServe cost? /
            Can I use KnapServe at work? / Is this open source? / May I sell KnapServe? / Licence? / License?"""
        ),
        terms=items("the licence of KnapServe / the license of KnapServe / KnapServe's licence"),
    ),
)
