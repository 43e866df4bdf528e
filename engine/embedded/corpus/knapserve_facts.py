"""What KnapServe's own model knows about KnapServe: for each fact one answer and the ways to ask for it.

Every answer must stay true of README.md and of `knapserve serve --help`.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.embedded.corpus.base import Phrases
from engine.embedded.corpus.manner import items, pool


@dataclass(frozen=True)
class Fact:
    """`terms` may be asked about with `WHAT_IS`, `deeds` with `HOW_TO`, all else is in `phrases`."""

    name: str
    answer: str
    phrases: Phrases
    terms: tuple[str, ...] = ()
    deeds: tuple[str, ...] = ()


WHAT_IS = pool(
    """What is {term}? / What does {term} mean? / Explain {term}. / Please tell me what {term} is. / {term}? /
    What's {term}? / Define {term}. / Can you explain {term}? / Tell me what {term} means. / What is {term} here? /
    In KnapServe, what is {term}? / What is meant by {term}? / What is {term} in KnapServe? /
    I don't know what {term} is. / Explain what {term} is. / Could you explain {term} to me? /
    What exactly is {term}? / Can you tell me what {term} means? / {term} / What does {term} mean in KnapServe? /
    Tell me about {term}. / Please explain {term}. / Explain {term} to me. / I want to know what {term} is. /
    What does KnapServe mean by {term}? / What do you mean by {term}? / I read about {term}. What is it? /
    In simple words, what is {term}?"""
)

HOW_TO = pool(
    """How do I {deed}? / How can I {deed}? / How to {deed} / How can I {deed} in KnapServe? / I want to {deed}. /
    Tell me how to {deed}. / Can I {deed}? / What do I type to {deed}? / Is it possible to {deed}? /
    How do I {deed} with KnapServe? / I need to {deed}. / Please tell me how to {deed}. / I'd like to {deed}. /
    How would I {deed}? / What is the way to {deed}? / Show me how to {deed}. / How does one {deed}? /
    How can one {deed}? / Explain how to {deed}. / What must I do to {deed}? / How could I {deed}? /
    What should I do to {deed}? / I don't know how to {deed}. / How am I able to {deed}? /
    Can you tell me how to {deed}? / In KnapServe, how do I {deed}? / Could you show me how to {deed}? /
    I would like to {deed}, how? / What command do I need to {deed}?"""
)

IDEAS = (
    Fact(
        "what",
        "KnapServe is an inference server with OpenAI's API. It answers faster than plain decoding because a part of "
        "the model drafts, and the output stays exactly the model's.",
        pool(
            """What kind of server is KnapServe? / What does KnapServe do? / What is KnapServe good for? /
            What is KnapServe for? / Tell me what KnapServe does. / What is special about KnapServe? /
            Why should I use KnapServe? / Is KnapServe an inference server? / What is the purpose of KnapServe? /
            Describe KnapServe. / Why use KnapServe? / What can KnapServe do? / Describe KnapServe in two sentences. /
            What kind of program is KnapServe? / Knapserve what is it / What is this software? /
            What is the idea of KnapServe? / What does this server do? / Why was KnapServe made?"""
        ),
        terms=items("KnapServe / knapserve / this server / Knapserve"),
    ),
    Fact(
        "self-speculation",
        "Self-speculation means that a part of the model drafts the next tokens and the whole model verifies them. "
        "No second model is needed.",
        pool(
            """How does self-speculation work? / How does speculation work? / How does KnapServe speculate? /
            How does the model speculate? / How does speculative decoding work? / Does KnapServe use speculation? /
            Explain how speculation works. / How does speculative decoding work in KnapServe? /
            Does KnapServe use speculative decoding? / What is the idea of self-speculation? /
            Explain how self-speculation works. / What is the trick of KnapServe? / Describe self-speculation. /
            Does the model draft for itself? / What kind of speculation does KnapServe use? /
            What does self-speculative mean?"""
        ),
        terms=items(
            "self-speculation / self speculation / speculation / self-speculative decoding / speculative decoding"
        ),
    ),
    Fact(
        "second model",
        "No second model is loaded: the draft comes from a part of the model that is served.",
        pool(
            """Do I need a second model? / Does KnapServe need a draft model? / Which model drafts? /
            Does KnapServe load a second model? / Is a second model loaded? / Do I need a draft model? /
            Where does the draft come from? / Who drafts? / Is there a separate draft model? /
            Which draft model does KnapServe use? / Do I have to load a draft model? / What model makes the draft? /
            Is a draft model needed? / What is the draft model? / Does it need a second model? /
            Do I have to give it a second model? / Must I load a second model? / Does KnapServe need a second model? /
            Does speculation need a draft model? / How many models are loaded?"""
        ),
    ),
    Fact(
        "draft",
        "A draft is a short run of tokens that a part of the model guesses ahead. The whole model then verifies them "
        "in one pass.",
        pool(
            """How does drafting work? / How is a draft made? / What happens when the model drafts? /
            How does the model draft? / How are tokens drafted? / What does it mean to draft tokens? /
            What happens in a draft? / Describe a draft. / Explain how drafting works. / What are drafts? /
            Describe how drafting works. / What does it mean that a token is drafted? / How does KnapServe draft? /
            What are draft tokens? / What are drafted tokens? / How does KnapServe make a draft?"""
        ),
        terms=items("a draft / drafting / a draft token / the draft / a drafted token / draft"),
    ),
    Fact(
        "verification",
        "Verification is one pass of the whole model over the drafted tokens. Those that the whole model agrees with "
        "are kept, and it adds one of its own.",
        pool(
            """How does verification work? / How is a draft verified? / How are drafts checked? /
            What happens when a draft is verified? / Who checks the draft? / What verifies the draft? /
            How does KnapServe verify the draft? / Explain how verification works. / How is the draft checked? /
            What does it mean to verify a draft? / How are draft tokens verified? / Which tokens are kept? /
            How does the model check the draft? / How are drafted tokens verified? / What happens after drafting? /
            What happens to a draft that is wrong? / When is a draft token kept? / Who verifies the draft?"""
        ),
        terms=items("verification / verifying / a verification pass / the verify pass / verification of a draft"),
    ),
    Fact(
        "acceptance",
        "The acceptance is the share of tested draft tokens that the whole model agrees with. The higher it is, the "
        "more drafting pays.",
        pool(
            """What is a good acceptance rate? / How is the acceptance computed? / What does the acceptance tell me? /
            When is a token accepted? / Is a high acceptance good? / When is a draft token accepted? /
            What does alpha stand for? / What does it mean that a token is accepted? / Why is acceptance important? /
            Should the acceptance be high? / How is the acceptance rate computed? / What share of drafts is accepted? /
            How is acceptance measured? / What are accepted tokens? / Is a low acceptance bad? /
            Why does the acceptance matter? / What does the acceptance rate tell me?"""
        ),
        terms=items("acceptance / the acceptance rate / the draft acceptance / alpha / an accepted token"),
    ),
    Fact(
        "TPT",
        "TPT means tokens per time: the tokens that a round is expected to bring, divided by the time it takes. "
        "KnapServe picks the plan with the highest TPT.",
        pool(
            """What does TPT stand for? / What is TPT short for? / How is TPT computed? / Why is TPT important? /
            Is a high TPT good? / What does KnapServe maximise? / What is the goal of KnapServe's search? /
            What is predicted_tpt? / What does the TPT tell me? / Should TPT be high? /
            How does KnapServe compute TPT? / What does KnapServe optimise? / How is the TPT of a plan computed? /
            What does predicted TPT mean? / Define the TPT. / What is the objective? / Why does KnapServe use TPT? /
            TPT stands for what?"""
        ),
        terms=items("TPT / tokens per time / predicted TPT / the TPT / tpt"),
    ),
    Fact(
        "plan",
        "A plan says what a request drafts with for a while: which sublayers run, how many tokens are drafted at most, "
        "and when to stop.",
        pool(
            """What does a plan say? / What is in a plan? / What does a draft plan contain? /
            What is in a draft plan? / What makes up a plan? / What does a plan contain? / What is part of a plan? /
            What does a plan decide? / How does a plan look? / What is a plan made of? / What is a plan for? /
            What belongs to a plan? / What does a plan tell the model? / What does a draft plan say? /
            What does the plan of a request say? / What are plans? / What is a plan good for?"""
        ),
        terms=items("a plan / a draft plan / a drafting plan / the plan of a request / the plan"),
    ),
    Fact(
        "knapsack",
        "Choosing the sublayers that draft is a knapsack problem: a sublayer's weight is its measured latency, and its "
        "value is how close the result stays to the full model.",
        pool(
            """Why is it called KnapServe? / What has a knapsack to do with it? / How are the sublayers chosen? /
            How is the plan chosen? / Why a knapsack? / Which layers draft? / How does KnapServe choose layers? /
            How does KnapServe choose the sublayers? / What does knapsack mean here? /
            How does KnapServe choose what drafts? / Why is it a knapsack? / Which sublayers draft? /
            Where does the name KnapServe come from? / How does KnapServe decide which layers to skip? /
            How does the knapsack work? / Which layers are skipped? / What does the name KnapServe mean? /
            How are layers chosen? / What is in the knapsack? / How does KnapServe pick a plan?"""
        ),
        terms=items("the knapsack / a knapsack / the knapsack problem here / knapsack"),
    ),
    Fact(
        "sublayer",
        "A sublayer is the attention or the MLP of one layer. A plan may skip each of them on its own.",
        pool(
            """What are sublayers? / How many sublayers has a layer? / Can a plan skip the attention alone? /
            What can a plan skip? / Is attention a sublayer? / Can sublayers be skipped? / Is an MLP a sublayer? /
            What can be skipped? / What sublayers are there? / Which sublayers does a layer have? /
            Which parts can a plan skip? / Does KnapServe skip whole layers? / What parts of a layer can be skipped? /
            Can the MLP be skipped alone? / What are the sublayers of a layer?"""
        ),
        terms=items("a sublayer / a sub-layer / sublayer / a skipped sublayer"),
    ),
    Fact(
        "round",
        "A round is: draft some tokens, verify them in one pass of the whole model, keep what it agrees with and add "
        "one token of its own.",
        pool(
            """What happens in a round? / How does a round work? / What does one round do? / What is done in a round? /
            What are the steps of a round? / How does one round look? / What does a round consist of? /
            What are rounds? / Describe a round. / What steps has a round? / What happens in each round? /
            Explain how a round works. / What is done in each round? / What happens in one round? /
            What does num_rounds count? / How does a decoding round work?"""
        ),
        terms=items("a round / a decoding round / one round / num_rounds"),
    ),
    Fact(
        "gamma",
        "Gamma is the most tokens that are drafted in a round. Gamma 0 is plain decoding.",
        pool(
            """What does gamma stand for? / How many tokens are drafted? / What does gamma 0 mean? /
            How many tokens are drafted in a round? / What is the draft length? / What does gamma say? /
            How long is a draft? / What is gamma 0? / How many tokens does a draft have? / How long can a draft be? /
            What is the length of a draft? / What does the value of gamma mean? /
            How many draft tokens are there in a round? / How long are drafts? / What does gamma zero mean?"""
        ),
        terms=items("gamma / the draft length / γ / the value gamma"),
    ),
    Fact(
        "output",
        "The output stays exactly the model's: the whole model verifies every drafted token. Only near-ties in "
        "rounding may fall differently.",
        pool(
            """Does speculation change the output? / Is the output the same? / Does drafting change the answer? /
            Are the answers worse? / Does KnapServe change the output? / Is speculation lossless? / Is it lossless? /
            Does the output stay the same? / Does the quality suffer? / Is the text the same as without drafting? /
            Is the quality the same? / Is KnapServe lossless? / Are answers different with speculation? /
            Do I get the same output? / Does drafting make answers worse? / Is the output exact? /
            Does self-speculation change the text? / Do I lose quality with speculation? / Do I lose quality? /
            Will the output be different? / Does skipping layers hurt the quality? / Is the output exactly the same? /
            Does the draft change what the model says? / Is the answer different without speculation? /
            Does it make the output worse?"""
        ),
    ),
    Fact(
        "training",
        "Nothing is trained: KnapServe serves a model as it is.",
        pool(
            """Is training needed? / Do I have to train something? / Does KnapServe train the model? /
            Does KnapServe need training? / Do I need to train anything? / Must I train a model? /
            Does it need training? / Is anything trained? / Do I have to fine-tune the model? /
            Is fine-tuning needed? / Does KnapServe fine-tune the model? / Must the model be trained for KnapServe? /
            Do I need to train a draft model? / Does the draft need training? / Does KnapServe change my model? /
            Are the weights changed? / Is the model trained for drafting? / Do I have to train a draft model? /
            Is training necessary? / Does KnapServe change the weights?"""
        ),
    ),
    Fact(
        "why fast",
        "A part of the model drafts several tokens cheaply and the whole model verifies them in one pass, so a pass of "
        "the whole model brings more than one token.",
        pool(
            """Why is KnapServe fast? / Why are you so fast? / What makes KnapServe fast? / Why is drafting faster? /
            Why is KnapServe faster? / How does KnapServe get faster? / Why is speculation faster? /
            Why is this so fast? / Why is it fast? / How can KnapServe be faster than plain decoding? /
            Why are you fast? / What makes it so fast? / Why does drafting help? / Where does the speed-up come from? /
            Why does speculation make it faster? / How does KnapServe speed up decoding? /
            Why is it faster than plain decoding? / How is KnapServe so fast? / Where does the speed come from? /
            Why is it so fast?"""
        ),
    ),
    Fact(
        "does not pay",
        "Where drafting does not pay, the request decodes plainly: KnapServe drafts only while that promises more "
        "tokens per time.",
        pool(
            """What happens if speculation does not pay? / What if drafting does not pay? /
            What happens when drafting does not pay? / What if speculation is slower? / What if drafts are bad? /
            What if the drafts are rejected? / What happens when the draft is always wrong? /
            What if drafting is slower than plain decoding? / What if the acceptance is low? /
            Can speculation make it slower? / What happens when speculation is slower? / Can drafting be slower? /
            What happens when the acceptance is low? / Does KnapServe fall back to plain decoding? /
            When does KnapServe decode plainly? / What happens if drafting is slower? / Does drafting always pay? /
            Does speculation always pay? / What if speculation makes it slower? / When does it decode plainly? /
            What happens if all drafts are rejected? / Is there a fallback?"""
        ),
    ),
    Fact(
        "paper",
        "KnapServe's main method is KnapSpec: https://arxiv.org/abs/2602.20217",
        pool(
            """Which paper is KnapServe based on? / What paper describes the method? / Is there a paper? /
            Where can I read about the method? / Which paper describes KnapSpec? / What is the paper? /
            Is there a paper about KnapSpec? / On which paper is KnapServe based? / Where is the paper? /
            Which method does KnapServe use? / What is the main method? / Where can I read more about KnapSpec? /
            What research is KnapServe based on? / What is KnapServe's main method? / Give me the paper. /
            Where can I find the paper? / What is the arXiv link?"""
        ),
        deeds=items("find the paper / read the paper / read about the method"),
    ),
    Fact(
        "this model",
        "I am a small Llama-style network of about 12 million parameters, trained from scratch only on text that a "
        "program generated.",
        pool(
            """What model is this? / Which model are you? / How big are you? / Which model is running? /
            How were you trained? / How large are you? / What model am I talking to? /
            How many parameters do you have? / What were you trained on? / Which model is this? /
            What data were you trained on? / What is your architecture? / What kind of model are you? /
            How big is this model? / How many parameters does this model have? / What is your training data? /
            How large is this model? / Which data were you trained on? / What kind of model is this? /
            Which model am I using? / How small are you? / What is your size? / How big is the built-in model? /
            How was this model trained? / On what data were you trained? / What was this model trained on? /
            What model is running here? / How big is the embedded model?"""
        ),
        terms=items("the built-in model / the embedded model / the default model / the demonstration model"),
    ),
)

RUNNING = (
    Fact(
        "install",
        "In KnapServe's folder, make serve installs what is needed and starts the server. It takes Python 3.11 or "
        "newer, pip and make.",
        pool(
            """What do I need to install KnapServe? / Which Python does KnapServe need? / What does KnapServe need? /
            What are the requirements? / What are the requirements of KnapServe? / Which Python version is needed? /
            What does make serve do? / How is KnapServe installed? / How is KnapServe started? /
            Which Python version do I need? / What command starts the server? / Which version of Python does it need? /
            How is the server started? / Which command starts KnapServe? / What must be installed for KnapServe?""",
            more="""How do I start the server? / How do I start KnapServe? / how do i start the server /
            How can I start the server? / How to start the server / How do I get the server running? /
            Start the server. / Start KnapServe. /
            What starts the server? / What do I type to start the server? / How do I launch the server? /
            How do I launch KnapServe? / How do I run the server? / What starts KnapServe? / Launch the server. /
            How do I bring the server up? / Which command starts the server? / Run the server. / How do I begin?""",
        ),
        terms=items("make serve"),
        deeds=items(
            "install KnapServe / start KnapServe / start the server / run KnapServe / set up KnapServe / run you"
        ),
    ),
    Fact(
        "load model",
        "Start the server with a checkpoint directory or a hub id: knapserve serve --model PATH_OR_HUB_ID",
        pool(
            """Which flag loads another model? / Can KnapServe serve my own model? / Where do I put my model? /
            Which command loads a model? / What is the command to load a model? / Can I use other models? /
            Is another model possible? / Which flag sets the model? / Can you run other models? /
            Can KnapServe run other models? / How is another model loaded? / What does --model do? /
            Can I use a bigger model? / Which option chooses the model? / How is my own model loaded? /
            Load another model. / Load my model. / Can KnapServe serve a bigger model? /
            How do I tell KnapServe which model to use? / Where do I set the model?"""
        ),
        terms=items("--model / the flag --model / the model flag"),
        deeds=items(
            """load another model / load a model / load my own model / use another model / use a different model /
            serve my own model / serve another model / change the model / run a real model / load a real model /
            load a bigger model / use my own checkpoint / serve a checkpoint / switch the model / use a better model /
            run a larger model / load a different model / load a larger model / choose the model / use a hub id /
            load a model from the hub / load a model from Hugging Face"""
        ),
    ),
    Fact(
        "files",
        "Hugging Face checkpoints of Llama, Mistral, Qwen2 and Qwen3 models, not quantised: config.json, safetensors "
        "and tokenizer.json.",
        pool(
            """Which model files work? / What format must the model have? / Which models are supported? /
            What kind of model files does KnapServe read? / Which models can KnapServe load? /
            What files does a model need? / Which checkpoints work? / Which formats are supported? /
            Does KnapServe read GGUF? / Which model formats are supported? / Which files does KnapServe need? /
            What files must be in the model directory? / Which models work? / What format do the weights need? /
            Which models can I use? / Does KnapServe read safetensors? / What must be in the model folder? /
            Which models does KnapServe support? / Which models can be loaded? /
            What kind of models does KnapServe support? / Does it support safetensors? /
            Which model files are needed? / Does KnapServe work with Hugging Face models? /
            Which model families are supported? / Which kinds of models does KnapServe support? /
            Does KnapServe support Llama? / Does KnapServe support Qwen? / Does KnapServe support Mistral? /
            Can KnapServe load quantised models? / Which architectures does KnapServe support?"""
        ),
    ),
    Fact(
        "port",
        "KnapServe listens on port 8000. For another port, start it with knapserve serve --port PORT",
        pool(
            """Which port does KnapServe use? / What port is it on? / What is the default port? /
            On which port does KnapServe listen? / Which port? / What port do you use? / Which flag sets the port? /
            On which port does the server run? / Port 8000 is taken, what now? / What port does KnapServe listen on? /
            Which port does the server use? / What is the port of the server? / Where do I set the port? /
            Port 8000 is in use. / On what port are you running? / Which option sets the port? /
            What is KnapServe's port? / What port does the server listen on?"""
        ),
        terms=items("the port / the default port / --port / the port number / the flag --port"),
        deeds=items("change the port / use another port / set the port / choose another port / use a different port"),
    ),
    Fact(
        "host",
        "KnapServe listens on 127.0.0.1, so only this machine reaches it. To let other machines in, start it with "
        "knapserve serve --host 0.0.0.0",
        pool(
            """Which address does KnapServe listen on? / What is the default host? / Which flag sets the host? /
            Which host does KnapServe use? / Can other machines reach KnapServe? / Can others use my server? /
            On which address does it listen? / Is KnapServe open to the network? / What address does the server use? /
            Can I reach KnapServe from another machine? / On which host does the server listen? /
            Why can't other machines reach the server? / Which option sets the host? /
            Can other computers reach the server? / Where do I set the host? /
            What address does KnapServe listen on?"""
        ),
        terms=items("--host / the host flag / the default host / the flag --host"),
        deeds=items(
            """change the host / set the host / reach the server from another machine / open KnapServe to the network /
            use KnapServe from another computer / let other machines in / listen on all addresses /
            change the address / reach KnapServe from my phone / set the host address /
            make the server reachable from outside"""
        ),
    ),
    Fact(
        "client",
        "Give your OpenAI client the base URL http://127.0.0.1:8000/v1 and any text as the API key.",
        pool(
            """What is the base URL? / Which URL do I use? / What is the OpenAI base URL? /
            Which base URL does the OpenAI client need? / Is there an OpenAI API? / What base URL do I set? /
            Does the OpenAI SDK work? / What URL do I give to the OpenAI client? /
            Is KnapServe compatible with OpenAI? / Which clients work? / What is the URL of the API? /
            Can OpenAI clients use KnapServe? / Where is the API? / Is the API compatible with OpenAI's? /
            Which base_url should I use? / What is the address of the API? / What is the API URL? /
            Does the OpenAI client work with KnapServe? / Which URL does my client need?"""
        ),
        terms=items("the base URL / base_url / the OpenAI base URL / the API URL"),
        deeds=items(
            """use the OpenAI SDK / use the OpenAI client / connect my client / call you from Python / use the API /
            connect an OpenAI client / use the OpenAI library / set the base URL / use KnapServe from Python /
            call KnapServe from my program / connect my app to KnapServe / send requests to KnapServe / call the API"""
        ),
    ),
    Fact(
        "endpoints",
        "KnapServe serves /v1/chat/completions, /v1/completions, /v1/models, /health, /live, /version, /metrics and "
        "/openapi.json.",
        pool(
            """Which endpoints are there? / What endpoints does KnapServe have? / List the endpoints. /
            Which endpoints does KnapServe serve? / What paths can I call? / Which endpoints can I call? /
            Show me all endpoints. / What are the endpoints? / Which routes are there? / List all endpoints. /
            What endpoints are there? / What endpoints do you have? / Name the endpoints of KnapServe. /
            Which API endpoints exist? / What routes does the server have? / Give me a list of the endpoints. /
            Tell me the endpoints. / Which endpoints does the server have? / What API endpoints does KnapServe serve? /
            Which paths does KnapServe serve? / Endpoints?"""
        ),
        deeds=items("see all endpoints / list the endpoints / find the endpoints"),
    ),
    Fact(
        "stop server",
        "Press Ctrl+C in the terminal where KnapServe runs. Running requests get up to 30 seconds to finish.",
        pool(
            """Which key stops the server? / How is KnapServe stopped? / What happens when I stop the server? /
            What stops the server? / What happens to running requests when I stop the server? /
            Which keys stop KnapServe? / How is the server stopped? / Which command stops KnapServe? /
            Stop the server. / Stop KnapServe. / What happens when I stop KnapServe? / Shut down the server. /
            Shut down KnapServe. / Are running requests finished when I stop the server?"""
        ),
        deeds=items(
            """stop KnapServe / stop the server / shut down the server / shut down KnapServe / end the server /
            quit KnapServe / turn off the server / turn KnapServe off / stop you / exit KnapServe / close the server"""
        ),
    ),
    Fact(
        "settings",
        "Settings come from flags, from environment variables such as KNAPSERVE_PORT, or from a TOML file given with "
        "--config FILE. Flags win over the environment, and that wins over the file.",
        pool(
            """Is there a config file? / Can I use a config file? / Where do settings come from? /
            Which environment variables are there? / Does KnapServe read a config file? / What does --config do? /
            Does KnapServe read environment variables? / What format has the config file? /
            How is KnapServe configured? / Do flags win over the config file? / Is there a settings file? /
            What wins, flags or the environment? / Which environment variables does KnapServe read? /
            Where can I put settings? / Where are the settings?"""
        ),
        terms=items("--config / KNAPSERVE_PORT / the config file / the flag --config"),
        deeds=items(
            """use a config file / set an environment variable / configure KnapServe / write a config file /
            put settings in a file / configure the server / use environment variables / keep settings in a file"""
        ),
    ),
    Fact(
        "flags",
        "knapserve serve --help explains every flag.",
        pool(
            """Which flags are there? / What options does KnapServe have? / List all flags. /
            Which options are there? / What flags does the server have? / Where are the flags explained? /
            What flags are there? / Which flags does KnapServe have? / Show me all options. /
            What are the flags of knapserve serve? / Is there a list of all flags? / Where do I find all options? /
            Which settings does KnapServe have? / What can I set? / Show me the flags. / Where is a list of flags? /
            Show me all flags."""
        ),
        terms=items("knapserve serve --help / the flag --help"),
        deeds=items("see all flags / list all options / see all options / find all flags / find all settings"),
    ),
    Fact(
        "version",
        "knapserve --version prints it, and the endpoint /version serves it.",
        pool(
            """Which version is this? / What version of KnapServe is this? / Which version is running? / Version? /
            What version is running? / Which version of KnapServe do I have? / What version do I have? /
            Which KnapServe version is this? / What is the version? / Where can I see the version? /
            Which version are you? / What is your version? / What version are you? / Show me the version. /
            Which version of KnapServe is running?"""
        ),
        deeds=items("see the version / find the version / check the version / get the version of KnapServe"),
    ),
    Fact(
        "device",
        "KnapServe runs on a CPU or on a CUDA GPU. Choose with --device cpu or --device cuda; the default is auto.",
        pool(
            """Do I need a GPU? / Does KnapServe run on a GPU? / Does it run on a CPU? / Does KnapServe support CUDA? /
            Can it use my GPU? / Does KnapServe need a GPU? / Does KnapServe use the GPU? / CPU or GPU? /
            Which device is used? / Is a GPU needed? / Which hardware does KnapServe run on? /
            Does KnapServe run without a GPU? / Which flag sets the device? / Are you on a GPU? /
            Does KnapServe run on a CPU? / What hardware do I need? / Are you running on a CPU or a GPU? /
            What hardware does KnapServe need? / What does --device do? / Which devices does KnapServe support? /
            Can KnapServe use CUDA?"""
        ),
        terms=items("--device / the device flag / the flag --device"),
        deeds=items(
            """use the GPU / use a GPU / run on the GPU / run on the CPU / set the device / choose the device /
            use CUDA / run KnapServe on a GPU / run KnapServe on the CPU / run without a GPU"""
        ),
    ),
    Fact(
        "dtype",
        "Set --dtype to auto, bfloat16, float16 or float32. On a CPU, auto takes bfloat16 where that is fast, else "
        "float32.",
        pool(
            """Which dtypes are supported? / Which flag sets the dtype? / What is the default dtype? /
            Which precision is used? / Which dtype does KnapServe use? / Does KnapServe support bfloat16? /
            Can I use float16? / What dtype is used on a CPU? / Which precision does KnapServe use? /
            What does --dtype do? / Does KnapServe support float16? / Which dtype is the default? /
            Can I use float32? / Is bfloat16 supported? / What dtypes are there? / Can I use bfloat16? /
            Where do I set the dtype?"""
        ),
        terms=items("--dtype / the dtype / the dtype flag / dtype auto / the flag --dtype"),
        deeds=items("set the dtype / change the dtype / use bfloat16 / use float32 / use float16 / set the precision"),
    ),
    Fact(
        "kv cache memory",
        "Use --kv-cache-memory with bytes, such as 4GiB, or with a share of the free memory, such as 0.4, which is the "
        "default.",
        pool(
            """Which flag sets the KV cache memory? / How large is the KV cache? /
            How much memory does the cache use? / How much memory does KnapServe use? / How big is the KV cache? /
            What does --kv-cache-memory do? / How much memory does the KV cache take? /
            Where do I set the cache size? / Which option sets the size of the KV cache? /
            What is the default size of the KV cache? / What is the size of the KV cache? /
            Why does KnapServe use so much memory? / How much memory is used for the KV cache? /
            KnapServe uses too much memory. / Which flag limits the memory?"""
        ),
        terms=items("--kv-cache-memory / the KV cache size / the KV cache memory / the flag --kv-cache-memory"),
        deeds=items(
            """set the KV cache memory / limit the memory / change the size of the KV cache / use less memory /
            make the KV cache smaller / give the KV cache more memory / limit the KV cache / set the cache size /
            make the KV cache larger / change the KV cache memory"""
        ),
    ),
    Fact(
        "max length",
        "Use --max-model-len LEN, in tokens. Without it, the model's own maximum holds.",
        pool(
            """What is the maximum context length? / How long can the context be? /
            Which flag sets the context length? / How long can a prompt be? / What is the longest context? /
            How long may a prompt be? / How many tokens fit in the context? / What does --max-model-len do? /
            Which flag sets the maximum model length? / What is the default context length? /
            What is the context size? / What is the maximum length of a prompt? / How large is the context window? /
            Where do I set the context length? / Is the prompt too long?"""
        ),
        terms=items("--max-model-len / the max model length / the maximum model length / the flag --max-model-len"),
        deeds=items(
            """set the context length / set the maximum model length / change the context length /
            use a longer context / limit the context length / set the max model length / make the context longer /
            limit the context"""
        ),
    ),
    Fact(
        "concurrency",
        "Up to 16 requests run at once and 256 more may wait. Change that with --max-num-seqs and --max-queued.",
        pool(
            """How many requests can run at once? / How many users can KnapServe serve? /
            Can it serve several requests? / How many requests can wait? / How many requests run at the same time? /
            Does KnapServe batch requests? / How many requests may wait? / How long is the queue? /
            How many requests can KnapServe serve at once? / What does --max-num-seqs do? /
            Can KnapServe serve many users at once? / What does --max-queued do? /
            Does KnapServe serve several requests at once? / How many users can use the server at the same time? /
            What is the limit of requests? / Why do I get 429?"""
        ),
        terms=items("--max-num-seqs / --max-queued / the flag --max-num-seqs / the flag --max-queued"),
        deeds=items(
            """serve more requests at once / change the number of requests / allow more requests / limit the requests /
            run more requests at once / serve several users at once / run several requests at once / limit the queue"""
        ),
    ),
    Fact(
        "threads",
        "Use --threads N. The default 0 takes one thread per core, but a single one for tiny models.",
        pool(
            """How many threads does KnapServe use? / Which flag sets the threads? / How many cores does it use? /
            How many CPU threads are used? / Does KnapServe use all cores? / What does --threads do? /
            How many threads do you use? / Which flag sets the number of threads? / How many threads are used? /
            Does it use all CPU cores? / How many CPU cores does KnapServe use? / Where do I set the threads? /
            What is the default number of threads? / Does KnapServe use several threads? / How many cores are used?"""
        ),
        terms=items("--threads / the threads flag / the number of threads / the flag --threads"),
        deeds=items(
            "set the number of threads / use more threads / limit the threads / use all cores / set the threads"
        ),
    ),
    Fact(
        "api key",
        "No API key is needed by default. To ask for one, start the server with knapserve serve --api-key KEY",
        pool(
            """Do I need an API key? / Which API key do I use? / Which flag sets an API key? /
            What API key do I need? / Is an API key needed? / Does KnapServe need an API key? / What is the API key? /
            Is there an API key? / Must I send an API key? / What does --api-key do? / Is the server protected? /
            Does KnapServe support API keys? / Where do I set a key? / Can KnapServe ask for a key? /
            Where do I get an API key? / Is the server protected by a key? / Does the server need a key?"""
        ),
        terms=items("--api-key / the API key / the flag --api-key"),
        deeds=items(
            """set an API key / protect the server / ask for an API key / protect KnapServe with a key /
            use an API key / add an API key / set a key / require an API key / protect my server with an API key"""
        ),
    ),
    Fact(
        "model name",
        "The built-in model is called knapserve-embedded, and /v1/models lists the names. Set others with "
        "--served-model-name NAME",
        pool(
            """What model name do I send? / Which model name do I use? / What is the name of the built-in model? /
            What is the model called? / What do I write as the model in a request? / Which model name is right? /
            Which name has the model? / What does --served-model-name do? / Which model name must I send? /
            What is the built-in model called? / What is the name of the model? /
            Which name does the model have in the API? / Which model name should I send?"""
        ),
        terms=items("--served-model-name / knapserve-embedded / the model name / the flag --served-model-name"),
        deeds=items(
            """set the model name / change the model name / give the model another name / find the model name /
            list the models / change the name of the model / see the names of the models"""
        ),
    ),
)
